// Package refusal tells errors of the data from errors of the way to the backend. Only refused data may be passed over.
package refusal

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Partial says that a backend accepted a request but for some of its items (OTLP's partial success). It comes wrapped as a permanent error: sending again would
// not help.
type Partial struct {
	Rejected int64  // spans or data points
	Message  string // the backend's
}

func (p *Partial) Error() string {
	return fmt.Sprintf("the backend rejected %d items of a request that it accepted: %s", p.Rejected, p.Message)
}

// What a gateway answers to a request that its backend accepted in part: an OTLP receiver of the collector can only say that all was accepted, or an error.
const (
	reason, domain          = "PARTIAL_SUCCESS", "trainbridge"
	rejectedKey, messageKey = "rejected", "message"
)

// GRPCStatus is that answer. Clients that do not know it do not send again; without it they would be told INTERNAL, which says nothing of the data.
func (p *Partial) GRPCStatus() *status.Status {
	st := status.New(codes.InvalidArgument, p.Error())
	info := &errdetails.ErrorInfo{
		Reason: reason, Domain: domain, Metadata: map[string]string{rejectedKey: strconv.FormatInt(p.Rejected, 10), messageKey: p.Message},
	}
	if with, err := st.WithDetails(info); err == nil {
		return with
	}
	return st
}

// FromGateway reads the error of a request: where it is a gateway's answer of that kind, and no other backend of the gateway said anything else, the backend
// accepted the request but for these items.
func FromGateway(err error) (rejected int64, message string, _ error) {
	st := status.Convert(err)
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == reason && info.GetDomain() == domain {
			n, bad := strconv.ParseInt(info.GetMetadata()[rejectedKey], 10, 64)
			p := Partial{n, info.GetMetadata()[messageKey]}
			before, whole := strings.CutSuffix(st.Message(), p.Error())
			if bad == nil && whole && !strings.ContainsAny(before, ";\n") { // which joins the errors of several
				return p.Rejected, p.Message, nil
			}
		}
	}
	return 0, "", err
}

// AsPartial finds the partial success that an error is. Where the error is of several consumers, one of them has taken nothing perhaps: then it is none.
func AsPartial(err error) (p *Partial, ok bool) {
	ok = len(each(err)) == 1 && errors.As(err, &p)
	return p, ok
}

// each are the errors of several consumers, as the collector joins them, or the one that it is.
func each(err error) []error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return several.Unwrap()
	}
	return []error{err}
}

// tooLarge matches the errors of servers for a message over their limit: grpc-go ("received message larger than max"), grpc-java ("gRPC message exceeds maximum
// size"), grpc-core ("Received message larger than max"), tonic ("message length too large"). gRPC has no code of its own for it.
var tooLarge = regexp.MustCompile(`(?i)larger than max|exceeds maximum size|length too large|message too large|request entity too large|body too large`)

// TooLarge says whether a request was refused for its size: its parts may be accepted.
func TooLarge(err error) bool {
	st, ok := status.FromError(err)
	return ok && st != nil && (st.Code() == codes.ResourceExhausted || st.Code() == codes.OutOfRange) && tooLarge.MatchString(st.Message())
}

// OfData says whether an error means that the data was refused, not that the backend, its credentials or something on the way there is in trouble: an OTLP
// receiver says INVALID_ARGUMENT then. A permanent error that has no code is of a component of this collector, which has looked at the data.
//
// Of the errors of several consumers all must say so.
func OfData(err error) bool {
	return err != nil && !slices.ContainsFunc(each(err), func(err error) bool { return !ofData(err) })
}

func ofData(err error) bool {
	if !consumererror.IsPermanent(err) {
		return false
	}
	st, ok := status.FromError(err)
	return !ok || st.Code() == codes.InvalidArgument || TooLarge(err)
}
