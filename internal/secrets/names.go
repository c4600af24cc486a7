package secrets

import "strings"

// named are known by the names of fields: settings, environment variables, options, parts of URLs. Joined words (apikey) are the same names.
var named = []Kind{
	{
		Name: "Passwords", Names: []string{"password", "passwd", "passphrase", "passcode", "passwort"}, Source: gitleaks + "generic-api-key",
		Examples: []Example{
			{`{"db_password": "hunter2", "lr": 1e-5}`, "hunter2"},
			{"PGPASSWORD=hunter2 psql", "hunter2"},
			{"password：hunter2，重试", "hunter2"},
			{`"{\"redis.Password\": \"hunter2\"}"`, "hunter2"},
			{"a=1%26password%3Dhunter2%26b=2", "hunter2"},
		},
	},
	{
		Name: "Keys", Names: before("key", keys), Source: gitleaks + "generic-api-key",
		Examples: []Example{
			{"run --api-key hunter2 --lr 1", "hunter2"},
			{"['train.py', '--api-key', 'hunter2']", "hunter2"},
			{"API key: hunter2", "hunter2"},
			{"  wandb_api_key ................ " + hex40, hex40},
			{"[('openai_api_key', 'hunter2'), ('lr', 1)]", "hunter2"},
			{"| secret_key | hunter2 |", "hunter2"},
		},
	},
	{
		Name: "Ids of access keys", Names: []string{"access key id", "access id", "secret id"}, Source: gitleaks + "aws-access-token",
		Examples: one("aws_access_key_id = hunter2", "hunter2"),
	},
	{
		Name:     "Lists of passwords and keys",
		Names:    append(before("keys", "api access secret private"), "passwords"),
		Source:   gitleaks + "generic-api-key",
		Examples: one("{'api_keys': ['hunter2', 'hunter3'], 'lr': 1}", "hunter3"),
	},
	{
		Name: "Tokens", Names: before("token", tokens), Looks: Text, Source: gitleaks + "generic-api-key",
		Examples: []Example{
			{"HF_TOKEN=hunter2 python", "hunter2"},
			{"{'hub_token': 'hunter two', 'x': 1}", "hunter two"},
			{"PRIVATE-TOKEN: hunter2", "hunter2"},
			{`env[\"GH_TOKEN\"] = \"hunter2\"`, "hunter2"},
		},
	},
	{
		Name: "Secrets, credentials", Looks: Text, Source: gitleaks + "generic-api-key",
		Names: []string{"secret", "credential", "credentials", "creds", "connection string", "conn string"},
		Examples: []Example{
			{"CLIENT_SECRET=hunter2", "hunter2"},
			{"appsecret: hunter2", "hunter2"},
			{"AZURE_CONNECTION_STRING='Endpoint=sb;K=hunter2'", "Endpoint=sb;K=hunter2"},
		},
	},
	{
		Name: "Authorization", Looks: Text, Source: gitleaks + "curl-auth-header",
		Names: []string{
			"authorization", "basic auth", "http auth", "proxy auth", "registry auth", "docker auth", "npm auth",
			"amz signature", "goog signature", "oss signature",
		},
		Examples: []Example{
			{"Authorization: token hunter2 sent", "hunter2"},
			{"AUTHORIZATION: BASIC " + "aHVudGVyOnR3bw== sent", "aHVudGVyOnR3bw=="},
			{"Authorization: AWS4-HMAC-SHA256 Credential=a/b, Signature=" + hex, hex},
			{"x.safetensors?X-Amz-Signature=" + hex + "&x=1", hex},
		},
	},
	{
		Name: "Cookies", Names: []string{"cookie", "cookies"}, Looks: Text, Source: gitleaks + "gitlab-session-cookie",
		Examples: one("Cookie: theme=dark; sessionid=hunter2", "hunter2"),
	},
	{
		Name: "`pass` and `pwd` of an account", Names: append(append(before("pass", accounts), before("pwd", accounts)...), "pwd"), Looks: Phrase,
		Source:   gitleaks + "generic-api-key; " + arl + "password",
		Examples: []Example{{"SMTP_PASS=hunter two", "hunter"}, {"MYCORP_PASS=hunter", "hunter"}, {"user=ann;dbPwd=hunter;x=1", "hunter"}},
	},
	{
		Name: "`*_TOKEN` and `*_KEY` of the environment, of no known service", Looks: Password, Source: gitleaks + "generic-api-key",
		Examples: []Example{{"export MYCORP_TOKEN=hunter22 x", "hunter22"}, {"MYCORP_KEY=hunter22", "hunter22"}},
	},
	{
		Name: "`token` and `dsn` of no known service", Names: []string{"token", "dsn"}, Looks: Long, Source: gitleaks + "generic-api-key",
		Examples: []Example{{"--token hunter2-and-more", "hunter2-and-more"}, {"mycorp_token: hunter2-and-more", "hunter2-and-more"}},
	},
	{
		Name: "`…_key` of no known service", Looks: Random, Source: gitleaks + "generic-api-key", Examples: one("mycorpKey: "+alnum, alnum),
	},
}

// The words before "key", "token", "pass" and "pwd".
const (
	keys = "api access secret private session encryption signing ssh auth authentication account admin master hmac shared subscription " +
		"wandb comet neptune openai anthropic azure gcp deploy license client app storage service consumer aes rsa swanlab kaggle sudo " +
		"root"
	tokens = "api access auth authentication authorization bearer refresh session security secret hub hf huggingface wandb github gh gitlab " +
		"slack bot oauth jwt csrf xsrf deploy service personal pat openai anthropic azure aws gcp google kaggle comet neptune mlflow " +
		"clearml registry docker npm pypi webhook write login private client modelscope swanlab vault consul sts ci notebook jupyter"
	accounts = "db database sql mysql mariadb pg postgres postgresql mongo mongodb redis rabbitmq mq amqp kafka ldap smtp imap pop mail email " +
		"ftp sftp ssh vpn http https proxy web user usr username login auth account admin administrator root sudo master my jenkins " +
		"nexus registry docker harbor git github gitlab svn jupyter notebook grafana influx clickhouse es elastic elasticsearch minio " +
		"oss hdfs hive spark ray wandb mlflow clearml comet keystore truststore cert key ssl tls zip app service api bmc ipmi"
)

// before makes names of two words, each of words before last.
func before(last, words string) (out []string) {
	for w := range strings.FieldsSeq(words) {
		out = append(out, strings.ReplaceAll(w, "-", " ")+" "+last)
	}
	return out
}
