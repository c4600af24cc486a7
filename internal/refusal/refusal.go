// Package refusal distinguishes errors of the data from errors on the way to the backend. Only refused data may be dropped.
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

// Partial says that a backend accepted a request except for some items (OTLP's partial success). The error is wrapped as permanent: sending again would not
// help.
type Partial struct {
	Rejected int64  // spans or data points
	Message  string // the backend's
}

func (p *Partial) Error() string {
	return fmt.Sprintf("the backend rejected %d items of a request that it accepted: %s", p.Rejected, p.Message)
}

// A gateway's answer to a request that its backend accepted in part: an OTLP receiver of the collector can only report full success, or an error.
const (
	reason, domain          = "PARTIAL_SUCCESS", "trainbridge"
	rejectedKey, messageKey = "rejected", "message"
)

// GRPCStatus is the answer of a gateway. Clients without support for partial success do not send again; the default INTERNAL would mean nothing for the data.
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

// FromGateway reads the error of a request. If the error is a gateway's partial success (GRPCStatus), and no other backend of the gateway returned an error,
// the request was accepted except for the rejected items: their number and the backend's message are returned, without an error. Any other error is returned as
// given.
func FromGateway(err error) (rejected int64, message string, _ error) {
	st := status.Convert(err)
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == reason && info.GetDomain() == domain {
			n, notNumber := strconv.ParseInt(info.GetMetadata()[rejectedKey], 10, 64)
			p := Partial{n, info.GetMetadata()[messageKey]}
			before, atEnd := strings.CutSuffix(st.Message(), p.Error()) // before: what the gateway's exporter wrapped around the error
			alone := atEnd && !strings.ContainsAny(before, ";\n")       // the gateway joins the errors of several backends by these
			if notNumber == nil && alone {
				return p.Rejected, p.Message, nil
			}
		}
	}
	return 0, "", err
}

// AsPartial finds the partial success in an error. With errors of several consumers, one of them may have accepted nothing: then the result is none.
func AsPartial(err error) (p *Partial, ok bool) {
	ok = len(each(err)) == 1 && errors.As(err, &p)
	return p, ok
}

// each are the errors of several consumers, as joined by the collector, or the single error.
func each(err error) []error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return several.Unwrap()
	}
	return []error{err}
}

// tooLarge matches the errors of servers for a message over their limit: grpc-go ("received message larger than max"), grpc-java ("gRPC message exceeds maximum
// size"), grpc-core ("Received message larger than max"), tonic ("message length too large"). gRPC has no code for the size.
var tooLarge = regexp.MustCompile(`(?i)larger than max|exceeds maximum size|length too large|message too large|request entity too large|body too large`)

// TooLarge says whether a request was refused for its size: smaller parts may be accepted.
func TooLarge(err error) bool {
	st, ok := status.FromError(err)
	return ok && st != nil && (st.Code() == codes.ResourceExhausted || st.Code() == codes.OutOfRange) && tooLarge.MatchString(st.Message())
}

// OfData says whether an error means that the data was refused: an OTLP receiver then returns INVALID_ARGUMENT. Other errors are of the backend, its
// credentials or the way there. A permanent error without a code is of a component of the collector, after looking at the data.
//
// Errors of several consumers must all be of the data.
func OfData(err error) bool {
	return err != nil && !slices.ContainsFunc(each(err), func(err error) bool { return !ofData(err) })
}

// ofData is OfData of a single error.
func ofData(err error) bool {
	if !consumererror.IsPermanent(err) {
		return false
	}
	st, ok := status.FromError(err)
	return !ok || st.Code() == codes.InvalidArgument || TooLarge(err)
}
