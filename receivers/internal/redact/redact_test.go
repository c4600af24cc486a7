package redact

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/secrets"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNamesOfSecrets(t *testing.T) {
	for want, names := range map[secrets.Looks]string{
		secrets.Anything: "api_key apikey api-key APIKey apiKey OPENAI_API_KEY wandb_api_key WANDB_KEY AWS_SECRET_ACCESS_KEY aws_access_key_id accessKey secret_key private_key " +
			"session_key ssh_key AZURE_STORAGE_ACCOUNT_KEY password db_password PGPASSWORD passwd redis.password password_value hub_apikey subscription-key api_key2 " +
			"model.api_key SharedAccessKey client-key-data api_keys rootpasswd 密码 数据库密码 密钥",
		secrets.Text: "hub_token HF_TOKEN hubToken token_auth.access_token auth_token github_token client_secret secret credentials credential GOOGLE_APPLICATION_CREDENTIALS authorization " +
			"Authorization http.request.header.authorization cookie Set-Cookie aws_session_token basic_auth connection_string X-Amz-Signature secrets.db credentials.user appsecret " +
			"MYCORP_SECRET csrftoken",
		secrets.Phrase:   "DB_PASS db_pass smtpPass MYCORP_PASS pwd db_pwd DB_PWD userPwd dbpwd PWD",
		secrets.Password: "MYCORP_TOKEN MYCORP_KEY env.MYCORP_KEY",
		secrets.Long:     "token mycorp_token tokenizer_token dsn sentry_dsn mytoken pass mycorp_pass",
		secrets.Random:   "mycorp_key mycorpKey mykey",
		secrets.Nothing: "tokens_per_sec num_tokens max_tokens token_throughput tokenizer tokenizer_name pad_token_id eos_token eos_token_id bos_token tokens consumed_tokens total_tokens key_value_heads num_key_value_heads " +
			"n_tokens max_new_tokens token_type_ids moe_token_dispatcher_type moe_token_drop_policy next_token image_token mask_token train_tokens tok/sec key keys attention_key cache_key public_key " +
			"primary_key metric_key query_key_value secret_name password_file forward_pass compass author session batch_size loss lr num_secrets cookiecutter_version basic authorize " +
			"key_padding_mask kv_channels use_auth_token_type ml.train.token.throughput monkey turkey PAD_TOKEN EOS_TOKEN MAX_TOKEN PUBLIC_KEY GPG_KEY CACHE_KEY prompt_key PROMPT_KEY " +
			"backward_pass bypass encompass FORWARD_PASS subtoken api_keys_used passed cwd OLDCWD passes tokenize KEY Key",
	} {
		for name := range strings.FieldsSeq(names) {
			assert.Equal(t, want, classify(name), name)
		}
	}
}

// No name of ours is taken for a secret's.
func TestNamesOfTheVocabulary(t *testing.T) {
	for _, name := range vocabulary(t) {
		if name == "pass" { // a value
			continue
		}
		assert.Equal(t, secrets.Nothing, classify(name), name)
	}
}

func TestSecretsInTexts(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	const x = Redacted
	for text, want := range map[string]string{
		"key AKIAIOSFODNN7EXAMPLE used":                                              "key " + x + " used",
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a":                                   x,
		"github_pat_11ABCDEFG0aBcDeFgHiJkL_abcdefghijklmnop":                         x,
		"push with hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh.":                           "push with " + x + ".",
		"sk-ant-api03-abcDEF0123456789-abcdefghij_klmno":                             x,
		"sk-proj-abcdefghijklmnop0123456789":                                         x,
		"xoxb-123456789012-abcdefGHIJKL":                                             x,
		"AIzaSyA1234567890abcdefghijklmnopqrstuvw":                                   x,
		"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123_-":                   "jwt " + x,
		"-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY----- end": x + " end",
		"-----BEGIN PRIVATE KEY-----\nMIIabc cut":                                    x,
		"sent Bearer abcdefghijkl0123456789 to it":                                   "sent Bearer " + x + " to it",
		"postgres://user:hunter2@db.local/x":                                         "postgres://user:" + x + "@db.local/x",
		"redis://:hunter2@db:6379":                                                   "redis://:" + x + "@db:6379",
		`{"api_key": "abc", "lr": 1e-5}`:                                             `{"api_key": "` + x + `", "lr": 1e-5}`,
		`{'hub_token': 'abc def', 'x': 1}`:                                           `{'hub_token': '` + x + `', 'x': 1}`,
		`"{\"password\": \"a1\", \"b\": 2}"`:                                         `"{\"password\": \"` + x + `\", \"b\": 2}"`,
		"AWS_SECRET_ACCESS_KEY=abc/def next=1":                                       "AWS_SECRET_ACCESS_KEY=" + x + " next=1",
		"run --api-key abcdef --lr 1":                                                "run --api-key " + x + " --lr 1",
		"run --hub_token=abcdef --lr 1":                                              "run --hub_token=" + x + " --lr 1",
		"  wandb_api_key ................ 0123456789abcdef0123456789abcdef01234567":  "  wandb_api_key ................ " + x,
		"Authorization: Basic dXNlcjpwYXNz rest":                                     "Authorization: " + x + " rest",
		"Server=a;User Id=b;Password=c d;Port=1":                                     "Server=a;User Id=b;Password=" + x + " d;Port=1",
		"password: 12345678":                                                         "password: " + x,
		"wandb: api_key=0123456789abcdef0123456789abcdef01234567":                    "wandb: api_key=" + x,

		"hub_token: None":                                 "",
		"hub_token=<HUB_TOKEN>":                           "",
		"eos_token: <|endoftext|>":                        "",
		"pad_token_id=151643":                             "",
		"token: 1234567":                                  "",
		"num_tokens: 4096, loss: 2.3":                     "",
		"sk-learn-compatible-estimators":                  "",
		"https://huggingface.co/a/b@main:x":               "",
		"commit 0123456789abcdef0123456789abcdef01234567": "",
		"trace 550e8400-e29b-41d4-a716-446655440000 at 2026-06-12 10:30:00": "",
		"hf_transformers_checkpoint_converter_v2":                           "",
		"bearer of good news that nobody expected":                          "",
		"token=positional_embeddings":                                       "",
		"":                                                                  "",
	} {
		var n Counts
		got := r.text(text, &n)
		if want == "" {
			assert.Equal(t, text, got)
			assert.Zero(t, n, text)
			continue
		}
		assert.Equal(t, want, got)
		assert.Equal(t, int64(1), n.Keys+n.Values, text)
	}
}

// The name of a secret may stand right behind another secret: the secret before is no word of the name.
func TestSecretsInARow(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	for text, want := range map[string]string{
		"password=hunter2x token=abcd1234efgh5678":             "password=[redacted] token=[redacted]",
		"api_key=1a2b3c4d5e6f token: abcd1234efgh5678 end":     "api_key=[redacted] token: [redacted] end",
		"password: hunter2x API key: abcd1234efgh5678":         "password: [redacted] API key: [redacted]",
		"--password hunter2x dsn=abcd1234efgh5678 lr=1":        "--password [redacted] dsn=[redacted] lr=1",
		"password=hunter2x the token=abcd1234efgh5678 and end": "password=[redacted] the token=[redacted] and end",
	} {
		var n Counts
		assert.Equal(t, want, r.text(text, &n))
		assert.Equal(t, int64(2), n.Keys+n.Values, text)
	}
}

// traces redacts spans as Batch does.
func traces(r *Redactor, td ptrace.Traces) Counts {
	w := r.walker()
	defer r.walkers.Put(w)
	for _, rs := range td.ResourceSpans().All() {
		w.attributes(rs.Resource().Attributes())
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			w.span(s)
		}
	}
	return w.counts
}

func TestHidesOnlyWhatIsThere(t *testing.T) {
	r, err := New(Config{Enabled: true, Keys: []string{"^employee$"}, Values: []string{`EMP-\d+`}})
	require.NoError(t, err)
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("load EMP-17")
	m := s.Attributes()
	field := spans.AttrTrainFieldPrefix
	m.PutStr(field+"api_key", "k")
	m.PutStr(field+"hub_token", "None")
	m.PutStr(field+"token", "something")
	m.PutDouble(field+"password", 12345678)
	m.PutDouble(field+"access_token", 7)
	m.PutInt(field+"employee", 7)
	m.PutInt(field+"ghp_16C7e42F292c6912E7710c838347Ae178B4a", 3)
	m.PutStr(spans.AttrLogFile, "/runs/ghp_16C7e42F292c6912E7710c838347Ae178B4a/x.log")
	list := m.PutEmptySlice(field + "list")
	list.AppendEmpty().SetStr("EMP-18")
	e := s.Events().AppendEmpty()
	e.SetName("EMP-19")
	e.Attributes().PutStr("x", "EMP-20")
	s.Links().AppendEmpty().Attributes().PutStr("x", "EMP-21")
	s.Status().SetMessage("EMP-22")
	for range 2 { // the second finds nothing more
		traces(r, td)
		assert.Equal(t, "load "+Redacted, s.Name())
		assert.Equal(t, map[string]any{
			field + "api_key": Redacted, field + "hub_token": "None", field + "token": "something", field + "password": Redacted, field + "access_token": 7.0,
			field + "employee": Redacted,
			field + Redacted:   int64(3), spans.AttrLogFile: "/runs/ghp_16C7e42F292c6912E7710c838347Ae178B4a/x.log", field + "list": []any{Redacted},
		}, m.AsRaw())
		assert.Equal(t, Redacted, e.Name())
		assert.Equal(t, Redacted, spans.AttrText(e.Attributes(), "x"))
		assert.Equal(t, Redacted, spans.AttrText(s.Links().At(0).Attributes(), "x"))
		assert.Equal(t, Redacted, s.Status().Message())
	}
}

// Values repeat: a known value is not searched again, but its secrets count again.
func TestCountsEachText(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range 3 {
		s := all.AppendEmpty()
		s.Attributes().PutStr("a", "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh")
		s.Attributes().PutStr("api_key", "x1")
	}
	assert.Equal(t, Counts{Keys: 3, Values: 3}, traces(r, td))
	assert.Equal(t, Counts{}, traces(r, td))
}

// The spans and resources of a batch are redacted before their size is measured, and no text exceeds the limit of an attribute.
func TestBatch(t *testing.T) {
	r, err := New(Config{HashHosts: true, HashKey: "0123456789abcdef"})
	require.NoError(t, err)
	b := spans.NewBatch("scope", "v")
	done := r.Batch(b)
	for range 1000 {
		s := b.Add(spans.Resource{Host: "node-1"}, spans.Span{Name: "n"})
		s.Attributes().PutStr("peers", strings.Repeat("8.8.8.8 ", spans.MaxAttributeBytes/8))
	}
	messages := b.Messages()
	require.Greater(t, len(messages), 1)
	assert.Equal(t, Counts{Hosts: int64(len(messages)) + 1000*spans.MaxAttributeBytes/8}, done())
	for _, m := range messages {
		assert.LessOrEqual(t, (&ptrace.ProtoMarshaler{}).TracesSize(m.Traces), spans.MaxMessageBytes)
		rs := m.Traces.ResourceSpans().At(0)
		assert.NotEqual(t, "node-1", spans.AttrText(rs.Resource().Attributes(), spans.AttrHostName))
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			assert.Len(t, spans.AttrText(s.Attributes(), "peers"), spans.MaxAttributeBytes)
		}
	}
}

func TestHosts(t *testing.T) {
	newOne := func(key string) *Redactor {
		r, err := New(Config{HashHosts: true, HashKey: "0123456789abcdef"})
		require.NoError(t, err)
		r.hosts.key = []byte(key)
		return r
	}
	host := func(r *Redactor, name, value string) string {
		m := pcommon.NewMap()
		m.PutStr(name, value)
		w := r.walker()
		w.attributes(m)
		return spans.AttrText(m, name)
	}
	a, b, other := newOne("one key of 16 by"), newOne("one key of 16 by"), newOne("another key, too")
	node := host(a, spans.AttrHostName, "node-17")
	assert.Regexp(t, `^host-[0-9a-f]{16}$`, node)
	assert.Equal(t, node, host(b, spans.AttrNCCLLateHost, "NODE-17"), "the same host is the same in every receiver")
	assert.NotEqual(t, node, host(other, spans.AttrHostName, "node-17"))
	assert.NotEqual(t, node, host(a, spans.AttrHostName, "node-18"))

	ip := host(a, spans.AttrHostName, "10.1.2.3")
	assert.Equal(t, "peer "+ip+":29500 lost", host(a, "ml.train.field.note", "peer 10.1.2.3:29500 lost"))
	assert.Equal(t, ip+":29500", host(a, "server.address", "10.1.2.3:29500"))
	assert.Equal(t, ip, host(a, "ml.train.field.MASTER_ADDR", "10.1.2.3"))
	v6 := host(a, "ml.train.field.node_ip", "fe80::1:2")
	assert.Equal(t, v6+":29500", host(a, "server.address", "[fe80::1:2]:29500"))
	assert.Equal(t, v6, host(a, "server.address", "[FE80::1:2]"))
	assert.Equal(t, "from "+v6+" on", host(a, "x", "from FE80::1:2 on"))
	for _, same := range []string{"", "127.0.0.1", "localhost:8080", "at 12:30:45 it was 1.2.3", "std::vector", "::", "step: 3"} {
		assert.Equal(t, same, host(a, "x", same))
	}
	for _, same := range []string{"", "127.0.0.1", "127.0.0.1:80", "localhost:8080", "::1", "[::1]:80"} {
		assert.Equal(t, same, host(a, spans.AttrHostName, same))
	}
	for _, same := range []string{spans.AttrServiceName, spans.AttrRunID, spans.AttrLogFile} {
		assert.Equal(t, "10.1.2.3", host(a, same, "10.1.2.3"))
	}
	assert.Equal(t, node, host(a, spans.AttrHostName, node), "a hash is not hashed again")
	for name, want := range map[string]bool{
		"host.name": true, "hostname": true, "node_name": true, "NodeName": true, "name": false, "hw.name": false, "ghost": false, "MASTER_ADDR": true,
		"ip": true, "zip": false,
	} {
		assert.Equal(t, want, isHost(name), name)
	}
}

func TestSample(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	line := []byte(`{"api_key": "k1", "note": "` + strings.Repeat("é", 200) + `", "x": `)
	got := r.Sample(line, 200)
	assert.True(t, strings.HasPrefix(got, `{"api_key": "[redacted]", "note": "é`), got)
	assert.LessOrEqual(t, len(got), 200)
	assert.NotContains(t, r.Sample([]byte(strings.Repeat("x ", 95)+"hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"), 200), "hf_", "cut in two")
	assert.Equal(t, "a\uFFFDb", (*Redactor)(nil).Sample([]byte("a\xffb"), 200))
}

func TestConfig(t *testing.T) {
	def := DefaultConfig()
	require.NoError(t, def.Validate())
	for want, cfg := range map[string]Config{
		"'redact::keys::1' must be a regular expression":      {Enabled: true, Keys: []string{"a", "("}},
		"'redact::values::0' must be a regular expression":    {Enabled: true, Values: []string{"("}},
		"'redact::values::0' must not match the empty text":   {Enabled: true, Values: []string{"a*"}},
		"'redact::hash_key' must have 16 bytes or more":       {HashHosts: true, HashKey: "short"},
		"'redact::keys' and 'redact::values' do nothing with": {Keys: []string{"a"}},
	} {
		require.ErrorContains(t, cfg.Validate(), want)
	}
	r, err := New(Config{})
	require.NoError(t, err)
	assert.Nil(t, r)
	assert.Zero(t, r.Batch(spans.NewBatch("", ""))())
}

func FuzzText(f *testing.F) {
	f.Add(`{"api_key": "abc", 'x': \"`)
	f.Add("--password ... Authorization: Basic")
	f.Add("postgres://u:p@h ::1 1.2.3.4:5")
	r, err := New(Config{Enabled: true, HashHosts: true, HashKey: "0123456789abcdef"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		var n Counts
		once := r.text(s, &n)
		if n == (Counts{}) && once != s {
			t.Fatalf("%q became %q and was not counted", s, once)
		}
		r.Sample([]byte(s), 10)
		classify(s)
		isHost(s)
	})
}

func BenchmarkTraces(b *testing.B) {
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	const n = 1000
	for i := range n {
		s := all.AppendEmpty()
		s.SetName("train.step")
		m := s.Attributes()
		m.PutStr(spans.AttrTimeSource, "derived")
		m.PutStr(spans.AttrSource, "jsonl")
		m.PutInt(spans.AttrIteration, int64(i))
		m.PutDouble(spans.AttrLoss, 2)
		m.PutDouble("ml.train.field.x", 2)
		m.PutStr("ml.train.field.phase", "warm up of the first stage")
		m.PutStr("ml.train.field.time", "2026-06-12 10:30:00."+string(rune('0'+i%10)))
	}
	r, err := New(DefaultConfig())
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		traces(r, td)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/n, "ns/span")
}

// vocabulary are the names in spans/generated_names.go.
func vocabulary(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../../../spans/generated_names.go")
	require.NoError(t, err)
	var out []string
	for _, m := range regexp.MustCompile(`"([a-z_0-9.]+)"`).FindAllSubmatch(b, -1) {
		out = append(out, string(m[1]))
	}
	require.Greater(t, len(out), 200)
	return out
}

// Real logs and the logs of the tests have no secrets, and no text in them is mistaken for one.
func TestNothingInRealLogs(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	var logs []string
	for root, of := range map[string]string{"../../../../shared/logs": "shared/logs/", "../../..": "testdata/"} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // shared is not everywhere
			settings := d != nil && d.Name() == "config.yaml" // may have a password
			if err == nil && !d.IsDir() && !settings && strings.Contains(path, of) {
				logs = append(logs, path)
			}
			return nil
		})
	}
	require.Greater(t, len(logs), 50)
	lines := 0
	for _, path := range logs {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			var n Counts
			assert.Equal(t, line, r.text(line, &n), path)
			lines++
		}
	}
	t.Log(lines, "lines of", len(logs), "files")
}
