package secrets

// Pieces of examples: of no service, and of no use.
const (
	alnum = "Zq3vT8kLm2Xw9RbN5cYd7Hf4Gs6Jp1Ke0Ua" // 35
	hex   = "3f9a1c07e5b24d68a0f1c2d3e4b59687"    // 32
	hex40 = hex + "0b1c2d3e"
	lower = "zq3vt8klm2xw9rbn5cyd7hf4gs6jp1ke0ua"
	uuid  = "3f9a1c07-e5b2-4d68-a0f1-c2d3e4b59687"
)

// clouds are the keys of clouds.
var clouds = []Kind{
	{
		Name: "AWS access key ids", Begins: []string{"akia", "asia", "abia", "acca"}, Pattern: `(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`,
		Source: gitleaks + "aws-access-token", Examples: one("credentials of "+"AK"+"IAZQ3VT2KLM5XW4RBN in use", "AK"+"IAZQ3VT2KLM5XW4RBN"),
	},
	{
		Name: "Aliyun access keys", Begins: []string{"ltai", "sts."}, Pattern: `(?:LTAI[A-Za-z0-9]{12,30}|STS\.[A-Za-z0-9]{16,64})\b`, Looks: Digits,
		Source:   gitleaks + "alibaba-access-key-id; " + betterleaks + "alibaba-sts-access-key-id",
		Examples: one("oss2.Auth('LT"+"AI5t"+alnum[:20]+"')", "LT"+"AI5t"+alnum[:20]),
	},
	{
		Name: "Tencent Cloud secret ids", Begins: []string{"akid"}, Pattern: `AKID[A-Za-z0-9]{13,40}\b`, Looks: Digits, Source: arl + "QCloud_AK_ID",
		Examples: one("cos with AK"+"ID"+alnum[:32], "AK"+"ID"+alnum[:32]),
	},
	{
		Name:     "Volcengine access keys",
		Begins:   []string{"aklt", "aktp"},
		Pattern:  `AK(?:LT|TP)[\w-]{16,}={0,2}`,
		Looks:    Digits,
		Source:   arl + "VolcanoEngine_AK_ID",
		Examples: one("tos with AK"+"LT"+alnum+"ZGQ=", "AK"+"LT"+alnum+"ZGQ="),
	},
	{
		Name: "Google API keys", Begins: []string{"aiza", "aq.ab8"}, Pattern: `(?:AIza[\w-]{30,}|AQ\.Ab8[\w-]{30,})`, Looks: Digits,
		Source: gitleaks + "gcp-api-key; " + betterleaks + "gcp-gemini-api", Examples: one("gemini AI"+"za"+alnum, "AI"+"za"+alnum),
	},
	{
		Name:     "Google OAuth client secrets",
		Begins:   []string{"gocspx-"},
		Pattern:  `GOCSPX-[\w-]{20,}`,
		Looks:    Digits,
		Source:   kingfisher + "google.2",
		Examples: one("client GOC"+"SPX-"+alnum[:28]+" made", "GOC"+"SPX-"+alnum[:28]),
	},
	{
		Name:     "Google OAuth tokens",
		Begins:   []string{"ya29.", "1//0"},
		Pattern:  `(?:ya29\.[\w-]{10,}|1//0[\w-]{30,})`,
		Looks:    Digits,
		Source:   trufflehog + "googleoauth2",
		Examples: one("gs:// opened with ya"+"29.a0Af_"+alnum, "ya"+"29.a0Af_"+alnum),
	},
	{
		Name: "Signatures of URLs (Azure SAS, OSS, COS, TOS, CloudFront)", Begins: []string{"sig=", "signature=", "sig%3d", "signature%3d"},
		Pattern: `(?i:sig|signature)` + equal + `([\w%+/=.~-]{16,})`, Looks: Random,
		Source: "Azure: Create an account SAS; Aliyun OSS: Signed URLs",
		Examples: one(
			"az://c.blob.core.windows.net/x?sv=2024-01-01&sp=r&si"+"g="+alnum[:20]+"%2B"+alnum[:20]+"%3D&se=2027", alnum[:20]+"%2B"+alnum[:20]+"%3D",
		),
	},
	{
		Name: "Databricks tokens", Begins: []string{"dapi"}, Pattern: `dapi[a-f0-9]{32}(?:-\d)?\b`, Source: gitleaks + "databricks-api-token",
		Examples: one("spark at dap"+"i"+hex, "dap"+"i"+hex),
	},
	{
		Name: "DigitalOcean tokens", Begins: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, Pattern: `do[opr]_v1_[a-f0-9]{32,}`,
		Source:   gitleaks + "digitalocean-pat, digitalocean-access-token, digitalocean-refresh-token",
		Examples: one("do"+"p_v1_"+hex+hex, "do"+"p_v1_"+hex+hex),
	},
}

// models are the keys for services that run models, and for stores of models and their records.
var models = []Kind{
	{
		Name: "Hugging Face tokens", Begins: []string{"hf_", "api_org_"}, Pattern: `(?:hf_|api_org_)[0-9A-Za-z]{20,}`, Looks: Digits,
		Source:   gitleaks + "huggingface-access-token, huggingface-organization-api-token",
		Examples: one("pushed with h"+"f_"+alnum[:34]+".", "h"+"f_"+alnum[:34]),
	},
	{
		Name: "Keys of OpenAI, Anthropic, DeepSeek, Moonshot, Qwen, OpenRouter", Begins: []string{"sk-"}, Pattern: `sk-[\w-]{20,}`, Looks: Random,
		Source:   gitleaks + "openai-api-key, anthropic-api-key; " + betterleaks + "deepseek-api-key, openrouter-api-key",
		Examples: one("judge with s"+"k-proj-"+alnum, "s"+"k-proj-"+alnum),
	},
	{
		Name: "NVIDIA API keys", Begins: []string{"nvapi-"}, Pattern: `nvapi-[\w-]{20,}`, Looks: Digits, Source: betterleaks + "nvidia-api-key",
		Examples: one("nim: nv"+"api-"+alnum+alnum[:29], "nv"+"api-"+alnum+alnum[:29]),
	},
	{
		Name: "Groq keys", Begins: []string{"gsk_"}, Pattern: `gsk_[A-Za-z0-9]{20,}`, Looks: Digits, Source: betterleaks + "groq-api-key",
		Examples: one("g"+"sk_"+alnum+alnum[:17], "g"+"sk_"+alnum+alnum[:17]),
	},
	{
		Name: "Replicate tokens", Begins: []string{"r8_"}, Pattern: `r8_[A-Za-z0-9]{20,}`, Looks: Digits, Source: betterleaks + "replicate-api-token",
		Examples: one("r"+"8_"+alnum+"Qx", "r"+"8_"+alnum+"Qx"),
	},
	{
		Name: "xAI keys", Begins: []string{"xai-"}, Pattern: `xai-[\w-]{20,}`, Looks: Random, Source: betterleaks + "xai-api-key",
		Examples: one("x"+"ai-"+alnum+alnum, "x"+"ai-"+alnum+alnum),
	},
	{
		Name:     "Keys of Cerebras, Perplexity, Together, RunPod, Pinecone, LangSmith",
		Begins:   []string{"csk-", "pplx-", "tgp_v1_", "rpa_", "pcsk_", "lsv2_"},
		Pattern:  `(?:csk-[a-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}|tgp_v1_[\w-]{40,}|rpa_[A-Za-z0-9]{40,}|pcsk_\w{40,}|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10})`,
		Looks:    Digits,
		Source:   betterleaks + "cerebras-api-key, perplexity-api-key, togetherai-api-key, runpod-api-key.1, pinecone-api-key.2, langchain-langsmith-service-key",
		Examples: one("pp"+"lx-"+alnum+alnum[:13], "pp"+"lx-"+alnum+alnum[:13]),
	},
	{
		Name:     "W&B keys that say so",
		Begins:   []string{"wandb_v1_"},
		Pattern:  `wandb_v1_\w{30,}`,
		Looks:    Digits,
		Source:   betterleaks + "weights-and-biases-api-key-v1",
		Examples: one("wan"+"db_v1_"+alnum+alnum, "wan"+"db_v1_"+alnum+alnum),
	},
	{
		Name: "W&B and SwanLab keys after `login` or `key`", Begins: []string{"wandb", "weave", "swanlab"},
		Pattern: `(?i)(?:wandb|weave|swanlab)\b[^\n]{0,80}?\b(?:login(?:` + apart + `+-{1,2}[\w-]+(?:=\S+)?)*|key)[\s:='",\[\]\\({]{1,6}` +
			`([0-9a-f]{40,}|[A-Za-z0-9]{21})\b`,
		Looks: Digits, Source: betterleaks + "weights-and-biases-api-key; manual of wandb: wandb login",
		Examples: []Example{
			{"+ wandb login --relogin " + hex40, hex40},
			{"['wandb', 'login', '" + hex40 + "']", hex40},
			{"wandb: using key " + hex40, hex40},
			{"wandb.login(key='" + hex40 + "')", hex40},
		},
	},
	{
		Name: "Kaggle keys", Begins: []string{`"username`}, Pattern: `"username\\*"\s*:\s*\\*"[^"]*"\s*,\s*\\*"key\\*"\s*:\s*\\*"([0-9a-f]{32})`,
		Source: "Kaggle: API, authentication (kaggle.json)", Examples: one(`wrote {"username":"ann","key":"`+hex+`"}`, hex),
	},
	{
		Name:     "Neptune API tokens, Grafana API keys",
		Begins:   []string{"eyjhcglf", "eyjrijoi"},
		Pattern:  `(?:eyJhcGlf|eyJrIjoi)[A-Za-z0-9+/]{30,}={0,2}`,
		Source:   gitleaks + "grafana-api-key; Neptune: API token (base64 of JSON)",
		Examples: one("neptune "+"eyJhcGlf"+alnum+alnum+"==", "eyJhcGlf"+alnum+alnum+"=="),
	},
}

// tools are the keys for building and monitoring jobs.
var tools = []Kind{
	{
		Name:    "GitHub tokens",
		Begins:  []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"},
		Pattern: `(?:gh[oprsu]_[0-9A-Za-z]{20,}|github_pat_\w{20,})`,
		Looks:   Digits, Source: gitleaks + "github-pat, github-oauth, github-app-token, github-refresh-token, github-fine-grained-pat",
		Examples: one("clone with gh"+"p_"+alnum+"Q", "gh"+"p_"+alnum+"Q"),
	},
	{
		Name:    "GitLab tokens",
		Begins:  []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "gloas-", "glagent-", "glffct-"},
		Pattern: `gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|oas|agent|ffct)-[\w.-]{16,}`, Looks: Digits,
		Source: gitleaks + "gitlab-pat and its neighbours", Examples: one("gl"+"pat-"+alnum[:20], "gl"+"pat-"+alnum[:20]),
	},
	{
		Name: "npm tokens", Begins: []string{"npm_"}, Pattern: `npm_[A-Za-z0-9]{30,}`, Looks: Digits, Source: gitleaks + "npm-access-token",
		Examples: one("//registry.npmjs.org/ uses np"+"m_"+alnum+"Q", "np"+"m_"+alnum+"Q"),
	},
	{
		Name: "PyPI tokens", Begins: []string{"pypi-"}, Pattern: `pypi-[\w-]{16,}`, Looks: Random, Source: gitleaks + "pypi-upload-token",
		Examples: one("twine with py"+"pi-AgEIcHlwaS5vcmc"+alnum+alnum, "py"+"pi-AgEIcHlwaS5vcmc"+alnum+alnum),
	},
	{
		Name: "Docker Hub tokens", Begins: []string{"dckr_pat_", "dckr_oat_"}, Pattern: `dckr_[po]at_[\w-]{16,}`, Looks: Digits,
		Source:   betterleaks + "dockerhub-personal-access-token, dockerhub-organization-access-token",
		Examples: one("dck"+"r_pat_"+alnum[:27], "dck"+"r_pat_"+alnum[:27]),
	},
	{
		Name:     "Vault tokens",
		Begins:   []string{"hvs.", "hvb.", "hvr."},
		Pattern:  `hv[bsr]\.[\w-]{20,}`,
		Looks:    Digits,
		Source:   gitleaks + "vault-service-token, vault-batch-token",
		Examples: one("vault: hv"+"s.CAESI"+alnum+alnum, "hv"+"s.CAESI"+alnum+alnum),
	},
	{
		Name: "Doppler tokens", Begins: []string{"dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."},
		Pattern: `dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}`, Looks: Digits, Source: gitleaks + "doppler-api-token",
		Examples: one("dp"+".pt."+alnum+alnum[:8], "dp"+".pt."+alnum+alnum[:8]),
	},
	{
		Name:    "Stripe keys",
		Begins:  []string{"sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"},
		Pattern: `[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}`,
		Looks:   Digits, Source: gitleaks + "stripe-access-token", Examples: one("s"+"k_live_"+alnum[:24], "s"+"k_live_"+alnum[:24]),
	},
	{
		Name: "SendGrid keys", Begins: []string{"sg."}, Pattern: `SG\.[\w-]{16,}\.[\w-]{16,}`, Looks: Digits, Source: gitleaks + "sendgrid-api-token",
		Examples: one("mail by S"+"G."+alnum[:22]+"."+alnum+alnum[:8], "S"+"G."+alnum[:22]+"."+alnum+alnum[:8]),
	},
	{
		Name: "Slack tokens", Begins: []string{"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"},
		Pattern: `(?:xox[a-eoprs][.-]|xapp-)[\w.%/+-]{10,}`, Looks: Digits, Source: gitleaks + "slack-bot-token and its neighbours",
		Examples: one("xo"+"xb-123456789012-123456789012-"+alnum[:24], "xo"+"xb-123456789012-123456789012-"+alnum[:24]),
	},
	{
		Name:     "Tokens of Telegram bots",
		Begins:   []string{":aa"},
		Pattern:  `:(AA[\w-]{32,34})\b`,
		Looks:    Digits,
		Source:   gitleaks + "telegram-bot-api-token",
		Examples: one("bot 123456789:A"+"A"+alnum[:33]+" up", "A"+"A"+alnum[:33]),
	},
	{
		Name:   "Grafana, Sentry, Atlassian, Artifactory, Linear, Notion, New Relic, Postman, Pulumi, Age, 1Password",
		Begins: []string{"glsa_", "glc_", "sntrys_", "sntryu_", "atatt3", "akcp", "lin_api_", "ntn_", "nrak-", "pmak-", "pul-", "age-secret-key-", "ops_eyj"},
		Pattern: `(?:glsa_\w{30,}|glc_[A-Za-z0-9+/]{32,}|sntrys_[\w+/=]{30,}|sntryu_[a-f0-9]{40,}|ATATT3[\w=-]{40,}|AKCp[A-Za-z0-9]{60,}|` +
			`lin_api_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{40,}|NRAK-[A-Z0-9]{27}|` +
			`PMAK-[a-f0-9]{24}-[a-f0-9]{34}|pul-[a-f0-9]{40}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|ops_eyJ[A-Za-z0-9+/]{40,})`,
		Source: gitleaks + "grafana-service-account-token, sentry-user-token, atlassian-api-token, artifactory-api-key, linear-api-key, notion-api-token, " +
			"new-relic-user-api-key, postman-api-token, pulumi-api-token, age-secret-key, 1password-service-account-token",
		Examples: one("gl"+"sa_"+alnum[:32]+"_3f9a1c07", "gl"+"sa_"+alnum[:32]+"_3f9a1c07"),
	},
}

// webhooks are addresses with which anybody can write to a group.
var webhooks = []Kind{
	{
		Name: "Webhooks of Feishu and Lark", Begins: []string{"open.feishu.cn", "open.larksuite.com"},
		Pattern: `(?i)open\.(?:feishu\.cn|larksuite\.com)` + slash + `open-apis` + slash + `bot` + slash + `(?:v2` + slash + `)?hook` + slash + `([\w-]{8,})`,
		Source:  arl + "feishu_webhookurl", Examples: one("notify https://open.feishu.cn/open-apis/bot/v2/hook/"+uuid, uuid),
	},
	{
		Name: "Webhooks of WeCom", Begins: []string{"qyapi.weixin.qq.com"},
		Pattern: `(?i)qyapi\.weixin\.qq\.com` + slash + `cgi-bin` + slash + `webhook` + slash + `\w+(?:\?|%3F)[^\s'"]*?key` + equal + `([\w-]{8,})`,
		Source:  arl + "wechat_webhookurl", Examples: one("notify https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key="+uuid, uuid),
	},
	{
		Name: "Webhooks of DingTalk", Begins: []string{"oapi.dingtalk.com"},
		Pattern: `(?i)oapi\.dingtalk\.com` + slash + `robot` + slash + `send(?:\?|%3F)[^\s'"]*?access_token` + equal + `([\w-]{8,})`,
		Source:  arl + "dingtalk_webhookurl", Examples: one("notify https://oapi.dingtalk.com/robot/send?access_token="+hex+hex, hex+hex),
	},
	{
		Name: "Webhooks of Slack", Begins: []string{"hooks.slack.com"},
		Pattern:  `(?i)hooks\.slack\.com` + slash + `(?:services|workflows|triggers)` + slash + `([\w+/%\\-]{16,})`,
		Source:   gitleaks + "slack-webhook-url",
		Examples: one("notify https://hooks.sla"+"ck.com/services/T0AB1CD2E/B0AB1CD2E/"+alnum[:24], alnum[:24]),
	},
	{
		Name: "Webhooks of Discord", Begins: []string{"discord.com", "discordapp.com"},
		Pattern:  `(?i)discord(?:app)?\.com` + slash + `api` + slash + `(?:v\d+` + slash + `)?webhooks` + slash + `\d+` + slash + `([\w-]{16,})`,
		Source:   trufflehog + "discordwebhook",
		Examples: one("notify https://disco"+"rd.com/api/webhooks/123456789012345678/"+alnum+alnum[:33], alnum+alnum[:33]),
	},
	{
		Name: "Addresses of Telegram bots", Begins: []string{"api.telegram.org"},
		Pattern:  `(?i)api\.telegram\.org` + slash + `(?:file` + slash + `)?bot\d+(?::|%3A)([\w-]{16,})`,
		Source:   gitleaks + "telegram-bot-api-token",
		Examples: one("POST https://api.telegram.org/bot123456789:"+"AB"+alnum[:33]+"/sendMessage", "AB"+alnum[:33]),
	},
	{
		Name:     "Webhooks of Teams",
		Begins:   []string{"webhook.office.com"},
		Pattern:  `(?i)webhook\.office\.com` + slash + `webhookb2` + slash + `([\w@%/\\-]{16,})`,
		Source:   gitleaks + "microsoft-teams-webhook",
		Examples: one("notify https://x.webhook.office.com/webhookb2/"+uuid+"@"+uuid+"/IncomingWebhook/"+hex+"/"+uuid, hex),
	},
}

// general are secrets of no service.
var general = []Kind{
	{
		Name: "JSON Web Tokens", Begins: []string{"eyj"}, Pattern: `eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`, Looks: Digits, Source: gitleaks + "jwt",
		Examples: one("jwt ey"+"JhbGciOiJIUzI1NiJ9.ey"+"JzdWIiOiIxMjM0In0."+alnum, "JzdWIiOiIxMjM0In0."+alnum),
	},
	{
		Name:   "Private keys in PEM",
		Begins: []string{"-----begin"},
		Pattern: `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)` +
			`(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`,
		Source:   gitleaks + "private-key",
		Examples: one("-----BEG"+`IN OPENSSH PRIVATE KEY-----\n`+alnum+`\n`+alnum+`\n-----END OPENSSH PRIVATE KEY----- loaded`, alnum+`\n`+alnum),
	},
	{
		Name:     "Bearer tokens",
		Begins:   []string{"bearer"},
		Pattern:  `(?i)bearer(?:\s|\+|%20)+([\w.~+/=-]{16,})`,
		Looks:    Digits,
		Source:   gitleaks + "curl-auth-header",
		Examples: one("sent Bearer "+lower, lower),
	},
	{
		Name:     "Basic authorization",
		Begins:   []string{"basic"},
		Pattern:  `(?i)basic(?:\s|\+|%20)+([A-Za-z0-9+/]{8,}={0,2})`,
		Looks:    Basic,
		Source:   gitleaks + "curl-auth-header",
		Examples: one("extraheader basic eC1hY2Nlc3MtdG9rZW46aHVudGVyMg==", "eC1hY2Nlc3MtdG9rZW46aHVudGVyMg=="),
	},
	{
		Name:     "`auth` of Docker's config.json",
		Begins:   []string{`"auth`, `'auth`},
		Pattern:  `["']auth\\*["']\s*:\s*\\*["']([A-Za-z0-9+/]{8,}={0,2})`,
		Looks:    Basic,
		Source:   "Docker: docker login, credential store",
		Examples: one(`{"auths": {"nvcr.io": {"auth": "`+"JG9hdXRodG9rZW46aHVudGVyMg=="+`"}}}`, "JG9hdXRodG9rZW46aHVudGVyMg=="),
	},
	{
		Name: "Passwords in URLs", Begins: []string{"://"}, Pattern: `://[^\s:/'"]*:([^\s/'"]+)@`, Source: "RFC 3986, 3.2.1",
		Examples: one("tracking at mysql+pymysql://ann:hunter2@db:3306/mlflow", "hunter2"),
	},
	{
		Name:     "Tokens in URLs",
		Begins:   []string{"://"},
		Pattern:  `://([^\s:/@'"]{12,})@`,
		Looks:    Random,
		Source:   "RFC 3986, 3.2.1; Sentry: data source names",
		Examples: one("pip install git+https://"+lower+"@git.example/org/x.git", lower),
	},
	{
		Name:     "Passwords in URLs in URLs",
		Begins:   []string{"%3a%2f%2f"},
		Pattern:  `(?i)%3A%2F%2F[^\s:/@'"&]*?(?::|%3A)([^\s/'"&]+?)(?:@|%40)`,
		Source:   "RFC 3986, 2.1",
		Examples: one("GET /?next=https%3A%2F%2Fann%3Ahunter2%40git.example", "hunter2"),
	},
	{
		Name: "密码 密钥 口令 令牌", Begins: []string{"密码", "密钥", "秘钥", "私钥", "口令", "访问令牌"},
		Pattern: `(?:密码|密钥|秘钥|私钥|口令|访问令牌)\s*["'”」]?\s*(?:[:：=＝]|为|是)\s*["'“「]?([!#-&(-+\--~]{4,})`, Source: arl + "password, in Chinese",
		Examples: one("数据库密码：hunter2，端口 3306", "hunter2"),
	},
}

// commands are passwords in options of commands.
var commands = []Kind{
	{
		Name:     "`mysql -pX`",
		Begins:   []string{"mysql", "mariadb"},
		Pattern:  `(?:mysql|mariadb)[\w-]*` + apart + `+` + sofar + `??-p(` + word + `)`,
		Source:   manual + "mysql, --password",
		Examples: []Example{{"mysqldump -h db -uroot -phunter2 runs", "hunter2"}, {"['mysql', '-uroot', '-phunter2']", "hunter2"}},
	},
	{
		Name:     "`sshpass -p X`",
		Begins:   []string{"sshpass"},
		Pattern:  `sshpass` + apart + `+` + sofar + `??-p` + apart + `*(` + word + `)`,
		Source:   manual + "sshpass, -p",
		Examples: []Example{{"['sshpass', '-p', 'hunter2', 'ssh', 'node-17']", "hunter2"}, {"sshpass -phunter2 ssh node-17", "hunter2"}},
	},
	{
		Name:    "`curl -u user:X`",
		Begins:  []string{"-u", "--user", "--proxy-user"},
		Pattern: `(?:-u|--user|--proxy-user)(?:` + apart + `+|=)[\w.@$-]+:(` + word + `)`,
		Looks:   Password,
		Source:  gitleaks + "curl-auth-user", Examples: one("+ curl -u ann:hunter2 https://nexus.example/x", "hunter2"),
	},
	{
		Name:     "`docker login -p X`",
		Begins:   []string{"login"},
		Pattern:  `login` + apart + sofar + `??-p` + apart + `+(` + word + `)`,
		Looks:    Password,
		Source:   manual + "docker login, -p",
		Examples: one("docker login -u ann -p hunter2 reg.example", "hunter2"),
	},
	{
		Name:     "`redis-cli -a X`",
		Begins:   []string{"redis-cli"},
		Pattern:  `redis-cli` + apart + `+` + sofar + `??-a` + apart + `+(` + word + `)`,
		Source:   manual + "redis-cli, -a",
		Examples: one("redis-cli -h head -a hunter2 ping", "hunter2"),
	},
	{
		Name:    "`ipmitool -P X`, `sqlcmd -P X`",
		Begins:  []string{"ipmitool", "sqlcmd"},
		Pattern: `(?:ipmitool|sqlcmd)` + apart + `+` + sofar + `??-P` + apart + `*(` + word + `)`,
		Source:  manual + "ipmitool, -P; sqlcmd, -P", Examples: one("ipmitool -H bmc-17 -U root -P hunter2 sel list", "hunter2"),
	},
	{
		Name: "`.netrc`", Begins: []string{"machine"}, Pattern: `machine\s+\S+\s+login\s+\S+\s+password\s+(` + word + `)`, Source: manual + "netrc",
		Examples: one("machine api.wandb.ai login user password hunter2", "hunter2"),
	},
}
