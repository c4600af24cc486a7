package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokens replace secret-like texts in the cases below, which source scanners would report.
var tokens = strings.NewReplacer(
	"{hf}", "h"+"f_QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi", "{ghp}", "gh"+"p_0123456789abcdefghijABCDEFGHIJ012345", "{ghs}", "gh"+"s_0123456789abcdefghijABCDEFGHIJ012345",
	"{sk}", "s"+"k-ant-api03-Abc_dEf-0123456789abcdefABCDEF-xyz", "{ds}", "s"+"k-0123456789abcdef0123456789abcdef", "{sf}", "s"+"k-qwertyuiopasdfghjklzxcvbnmqwertyuiopasdfghjklzxcvb1n",
	"{hex32}", "fedcba98765432100123456789abcdef", "{hex40}", "fedcba98765432100123456789abcdef01234567", "{hex64}", strings.Repeat("fedcba9876543210", 4),
	"{uuid}", "fedcba98-7654-3210-0123-456789abcdef", "{nv}", "nv"+"api-0123456789abcdefABCDEF-_0123456789abcdefABCDEF0123456789abcdefABCD",
	"{akia}", "AK"+"IAQWERTYUIOPASDFGH", "{asia}", "AS"+"IA0123456789ABCDEF", "{aws}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYQWERTYKEY0", "{xoxb}", "xo"+"xb-1234567890-abcdefABCDEF123456",
	"{jwt}", "ey"+"JhbGciOiJSUzI1NiJ9.ey"+"JpYXQiOjE3MDAwMDAwMDB9.c2lnbmF0dXJl", "{pypi}", "py"+"pi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3ODlhYmNkZWY", "{b64}", "YW5uOmh1bnRlcjI=",
	"{az}", "abc0DEFghi1JKLmno2PQRstu3VWXyz4ABCdef5GHIjkl6MNOpqr7STUvwx8YZAbcd9EFGhij0KLMnopQ==", "{ltai}", "LT"+"AI5tQwErTyUiOpAsDfGhJk", "{akid}", "AK"+"ID0123456789abcdefABCDEF0123456789ab",
	"{aklt}", "AK"+"LTZmVkY2JhOTg3NjU0MzIxMDAxMjM0NTY3ODlhYmNkZWY", "{glpat}", "gl"+"pat-0123456789abcdefABCD", "{dckr}", "dck"+"r_pat_0123456789abcdefABCDEF-_012",
	"{pem}", "-----BEG"+"IN RSA PRIVATE KEY-----", "{endpem}", "-----E"+"ND RSA PRIVATE KEY-----", "{aiza}", "AI"+"zaSy0123456789abcdefABCDEF-_0123456",
	"{wb}", "wan"+"db_v1_"+strings.Repeat("0aB", 26),
)

// shapes are secrets as they really appear in the logs of jobs, between « and ».
var shapes = []string{
	// W&B and similar services
	"wandb login «{hex40}»", "+ wandb login --relogin --host=https://wandb.corp «{hex40}»", "wandb: using key «{hex40}»", "wandb: Using API key: «{hex40}»", "WANDB_API_KEY=«{hex40}»",
	"export WANDB_API_KEY=\"«{hex40}»\"", "wandb.login(key=\"«{hex40}»\", relogin=True)", "['wandb', 'login', '«{hex40}»']", "wandb_key: «{hex40}»", "machine api.wandb.ai\n  login user\n  password «{hex40}»",
	"wandb login «{wb}»", "swanlab login -k «0123456789abcdefABCDE»", "SWANLAB_API_KEY='«0123456789abcdefABCDE»'", "comet_ml.init(api_key='«QwErTyUiOp0123456789AsDfG»')",
	"COMET_API_KEY=«QwErTyUiOp0123456789AsDfG»", "NEPTUNE_API_TOKEN=\"«eyJhcGlfYWRkcmVzcyI6Imh0dHBzOi8vYXBwLm5lcHR1bmUuYWkifQ==»\"", "CLEARML_API_SECRET_KEY=«QwErTyUiOp0123456789»",
	`api { credentials {"access_key" = "«QWERTYUIOP0123456789»", "secret_key" = "«QwErTyUiOp0123456789AsDfGhJk»"} }`, "MLFLOW_TRACKING_PASSWORD=«hunter2»", "MLFLOW_TRACKING_TOKEN=«hunter2»",
	"mlflow server --backend-store-uri mysql+pymysql://ml:«hunter2»@db:3306/ml", `{"username":"ann","key":"«{hex32}»"}`, "KAGGLE_KEY=«{hex32}»",
	// model hubs
	"huggingface-cli login --token «{hf}» --add-to-git-credential", "hf auth login --token «{hf}»", "HUGGING_FACE_HUB_TOKEN=«{hf}»", "Token: «{hf}» is valid", "use_auth_token='«{hf}»'",
	"git clone https://ann:«{hf}»@huggingface.co/org/model", "MODELSCOPE_API_TOKEN=«{uuid}»", "modelscope login --token «{uuid}»", "TrainingArguments(hub_token=«{hf}», lr=1)",
	"OPENAI_API_KEY=«{sk}»", "openai.api_key = \"«{sk}»\"", "AuthenticationError: Incorrect API key provided: «{ds}». You can find", "judge = OpenAI(api_key='«{sf}»', base_url='x')",
	"deepseek «{ds}»", "DASHSCOPE_API_KEY=«{ds}»", "NGC_API_KEY=«{nv}»", "docker login nvcr.io -u $oauthtoken -p «{nv}»", "ngc registry key «{nv}»", "gemini key «{aiza}»",
	// code and packages
	"git clone https://x-access-token:«{ghs}»@github.com/org/repo.git", "remote: https://«{ghp}»@github.com/org/repo", "pip install --extra-index-url https://__token__:«{glpat}»@gitlab.corp/simple x",
	"PIP_INDEX_URL=https://ann:«hunter2»@nexus.corp/simple", "pip install -i https://«qwertyuiop0123456789»@pypi.corp/simple x", "twine upload -u __token__ -p «{pypi}»",
	"npm config set //registry.npmjs.org/:_authToken=«npm" + "_0123456789abcdefghijABCDEFGHIJ012345»", "docker login -u ann --password «hunter2» reg.corp", "echo «{dckr}» | docker login --password-stdin",
	`{"auths":{"reg.corp":{"auth":"«{b64}»"}}}`, `{"auths":{"reg.corp":{"username":"ann","password":"«hunter2»"}}}`,
	// launchers and dumps
	"torchrun --nproc_per_node 8 train.py --hub_token «hunter2» --lr 1e-5", "['/usr/bin/python', '-u', 'train.py', '--local_rank=0', '--api-key', '«hunter2»', '--lr', '1e-5']",
	"[launch.py:256:main] process 12 spawned with command: ['python', '-u', 'x.py', '--wandb_token=«hunter2»']", "cmd = python -u x.py --openai_key «hunter2» --deepspeed ds.json",
	"runtime_env={'env_vars': {'HF_TOKEN': '«{hf}»', 'WANDB_API_KEY': '«{hex40}»', 'NCCL_DEBUG': 'INFO'}}", `Job submitted: {"runtime_env": {"env_vars": {"AWS_SECRET_ACCESS_KEY": "«{aws}»"}}}`,
	"SLURM_JOB_ID=1 SLURM_JWT=«{jwt}» SLURM_NTASKS=8", "environ({'PATH': '/bin', 'DB_PASS': '«hunter»', 'HOME': '/root'})", "declare -x REDIS_PASSWORD=\"«hunter2»\"", "+ export MYSQL_PWD=«hunter2»",
	"docker run -e HF_TOKEN=«{hf}» -e LR=1 img", "Namespace(lr=1e-5, api_key='«hunter2»', model='x')", "[('lr', 1e-05), ('hub_token', '«hunter2»')]", "  hub_token ....................... «hunter2»",
	"│ openai_api_key │ «hunter2» │", "+trainer.logger.api_key=«hunter2» model=x", "--set secrets.openai=«hunter2»", "password:  «hunter2»", "PASSWORD = '«hunter2»'", "b'password=«hunter2»'", "password=b'«hunter2»'",
	"SecretStr: api_key=SecretStr('«hunter2»')", `{\"api_key\": \"«hunter2»\"}`, `{\\\"api_key\\\": \\\"«hunter2»\\\"}`, "<password>hidden</password> token=«abcdef0123456789»", "Enter API key: «hunter2»",
	"access token：«hunter2»", "密码：«hunter2»", "数据库密码为 «hunter2!»，请保存", "密钥=«QwErTy0123456789»", `{"密码": "«hunter2»"}`, "访问密钥: «hunter2»", "口令是“«hunter2»”", "用户名：ann，密码：“«hunter2»”",
	// clouds
	"aws_access_key_id=«{akia}» aws_secret_access_key=«{aws}»", "botocore: Credentials(access_key='«{asia}»', token='«{jwt}»')",
	"https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Credential=«{akia}»%2F20260101%2Fus&X-Amz-Security-Token=«IQoJb3JpZ2luX2VjEA»&X-Amz-Signature=«{hex64}»",
	"https://storage.googleapis.com/b/k?X-Goog-Credential=svc%40p&X-Goog-Signature=«{hex64}»", "https://a.blob.core.windows.net/c?sv=2024&se=2027&sp=r&sig=«abc0DEFghi1JKLmno2%2BPQR%3D»",
	"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«{az}»;EndpointSuffix=core", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey=«{az}»",
	"https://b.oss-cn-beijing.aliyuncs.com/k?OSSAccessKeyId=«{ltai}»&Expires=1&Signature=«abc0DEFghi1JKLmno2PQR%3D»", "oss2.Auth('«{ltai}»', 'x')", "cos_secret_id: «{akid}»", "TOS ak «{aklt}» used",
	"ak=«{ltai}» sk=x", "ALIBABA_CLOUD_ACCESS_KEY_SECRET=«hunter2»", "gcloud «ya" + "29.a0AfH6SMBx-0123456789abcdef» expired", `"client_secret": "«GOC` + `SPX-0123456789abcdef_-ABCDEFGH»"`,
	"AZURE_CLIENT_SECRET=«abc8Q~hunter»", `"private_key": "«{pem}\nMIIEpAIBAAKCAQEA0123\n{endpem}»\n", "x": 1`, "«{pem}\nMIIEpAIBAAKCAQEA0123\n{endpem}»", `key=«{pem}\\nMIIEpAIB\\n{endpem}»`,
	"VAULT_TOKEN=«hvs.CAESIJ0123456789abcdefABCDEF»", "DOPPLER_TOKEN=«dp.pt.0123456789abcdefABCDEF0123»", "dapi: «dapi0123456789abcdef0123456789abcdef» used", "client-key-data: «LS0tLS1CRUdJTiBSU0E=»",
	"users: [{user: {token: «{jwt}»}}]", "STRIPE «sk_" + "live_0123456789abcdefABCDEF01»",
	// requests
	"> Authorization: Bearer «{jwt}»", "authorization: bearer «qwertyuiop0123456789»", "AUTHORIZATION: BASIC «{b64}»", "Authorization: token «{ghp}»", "{'Authorization': 'Bearer «hunter2-hunter2-hunter2»'}",
	"-H 'X-Api-Key: «hunter2»'", "x-goog-api-key: «hunter2»", "PRIVATE-TOKEN: «{glpat}»", "Cookie: a=«hunter2»; sessionid=«hunter3»; csrftoken=«hunter4»", "Set-Cookie: sid=«hunter2»; Path=/; HttpOnly",
	"curl -s -u ann:«hunter2» https://x/y", "curl --user=ann:«hunter2» https://x", "['curl', '-u', 'ann:«hunter2»', 'https://x']", "wget --http-password=«hunter2» https://x", "GET /cb?access_token=«hunter2»&state=1",
	"GET /cb%3Fapi_key%3D«hunter2»%26x%3D1", "POST /login user=ann&password=«hunter2»&x=1", `%7B%22api_key%22%3A%22«hunter2»%22%7D`, "next=https%3A%2F%2Fann%3A«hunter2»%40git.corp%2Fx",
	// chats
	"https://open.feishu.cn/open-apis/bot/v2/hook/«{uuid}»", `https:\/\/open.feishu.cn\/open-apis\/bot\/v2\/hook\/«{uuid}»`, "webhook=https%3A%2F%2Fopen.feishu.cn%2Fopen-apis%2Fbot%2Fv2%2Fhook%2F«{uuid}»",
	"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=«{uuid}»", "https://oapi.dingtalk.com/robot/send?access_token=«{hex64}»&timestamp=1&sign=x", "https://hooks.slack" + ".com/services/«T0123ABCD/B0123ABCD/0123456789abcdefABCDEFGH»",
	"https://disco" + "rd.com/api/webhooks/123456789012345678/«0123456789abcdef-_ABCDEFGHIJ0123456789abcdef»", "https://api.telegram.org/bot123456789:«AAH0123456789abcdef-_ABCDEFGHIJ012345»/sendMessage",
	"telegram_bot_token=123456789:«AAH0123456789abcdef-_ABCDEFGHIJ012345»", "slack «{xoxb}»", "SMTP_PASS=«hunter»", "smtp://ann@corp:«hunter2»@smtp.corp:587", "smtplib.login('ann', password='«hunter2»')",
	// services
	"redis://:«hunter2»@head:6379/0", "mongodb+srv://ann:«p%40ss»@c.mongodb.net/x", "amqp://guest:«guest1»@mq:5672", "postgresql://ann:«hunter#2»@db/x", "redis-cli -h head -a «hunter2» ping", "mysql -h db -uann -p«hunter2» -e x",
	"sshpass -p «hunter2» ssh ann@node-1", "sshpass -p'«hunter2»' scp x y", "ipmitool -I lanplus -H bmc -U ADMIN -P «hunter2» sel list", "https://«{hex32}»@o12.ingest.sentry.io/34", "SENTRY_DSN=«https://{hex32}@o12.ingest.sentry.io/34»",
	"jupyter http://node-1:8888/lab?token=«{hex64}»", "PGPASSWORD=«hunter2» psql -h db", "jdbc:mysql://db/x?user=ann&password=«hunter2»", "Server=db;Uid=ann;Pwd=«hunter2»;Database=x", "RAY_REDIS_PASSWORD='«5241590000000000»'",
	"ray start --redis-password=«hunter2» --head", "\x1b[1;33mHF_TOKEN\x1b[0m=«{hf}»", "MYCORP_TOKEN=«hunter22»", "mycorpToken: «hunter22-hunter22»", "APP_PWD=«hunter2»", "myAppSecret=«hunter2»",
}

func TestShapesInLogs(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	found, all := 0, 0
	for _, marked := range shapes {
		marked = tokens.Replace(marked)
		text := strings.NewReplacer("«", "", "»", "").Replace(marked)
		got := r.text(text, &Counts{})
		for part := range strings.SplitSeq(marked, "«") {
			secret, _, ok := strings.Cut(part, "»")
			if !ok {
				continue
			}
			all++
			if strings.Contains(got, secret) {
				t.Errorf("%q became %q: %q is left", text, got, secret)
				continue
			}
			found++
		}
	}
	t.Logf("%d of %d secrets in %d texts found", found, all, len(shapes))
}

// A colour somewhere before does not make the end of a word the beginning of one.
func TestColourFarBefore(t *testing.T) {
	for text, redactions := range map[string]int64{"\x1b[1mstream{ghp}": 0, "stream{ghp}": 0, "\x1b[1m{ghp}": 1, "\x1b[38;5;255m{ghp}": 1} {
		var n Counts
		shaped(tokens.Replace(text), &n)
		require.Equal(t, redactions, n.Values, text)
	}
}
