package redact

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// benign are texts that look like secrets, and are none.
var benign = []string{
	// words of models
	"tokens=123456789012", "consumed_tokens: 123456789012", "max_token=4096", "MAX_TOKEN=4096", "token=positional_embeddings", "token: 1234567", "num_tokens: 4096, loss: 2.3", "tokens_per_sec=51234.5",
	"pad_token_id=151643", "eos_token: <|endoftext|>", "PAD_TOKEN=<|pad|>", "bos_token='<s>', unk_token='<unk>'", "special_tokens_map: {'eos_token': '</s>'}", "next_token='Ġthe'", "hub_token=<HUB_TOKEN>",
	"hub_token: None", "use_auth_token=True", "token_type_ids=[0, 0]", "tokenizer=meta-llama/Llama-3.1-8B-Instruct", "image_token_index: 32000", "attention_key=model.layers.12.self_attn.k_proj",
	"key_value_heads=8", "num_key_value_heads: 8", "cache_key=layer12head3block7abc", "key=value", "key: value", "key=0123456789abcdef0123456789abcdef", "public_key=ssh-rsa", "PUBLIC_KEY=AAAAB3NzaC1yc2E",
	"GPG_KEY=E3FF2839C048B25C084DEBE9B26995E310250568", "PROMPT_KEY=question", "data.prompt_key=prompt", "sort_key=2026-01-02T10:00:00", "monkey=banana1234567", "keys=['loss', 'lr']", "missing keys: ['model.norm.weight']",
	"unexpected key(s) in state_dict: \"lm_head.weight\"", "PRNGKey: [0 42]", "group_key=7c9e6679-7425-40de-944b-e07fc1f90ae7", "forward_pass: 12.3", "backward_pass: done", "FORWARD_PASS=enabled",
	"fusion_pass=enabled", "pass: forward", "second pass: 12", "PASS: test_foo", "bypass=on", "PWD=/root/work", "OLDPWD=/root", "pwd: ~/x", "cwd=/root", "password: ****", "password: None", "password=", "password:",
	"api_key=***", "api_key=None", "api_key: <API_KEY>", "api_key: null, lr: 1e-5", "secret_name=wandb", "password_file=/run/secrets/db", "author: Ann", "secret santa is here", "cookiecutter: 2.1",
	"missing token, secret or key", "the password for node is unknown", "loss per token: 2.31", "time per access token (ms): 12.1", "session: 12", "credentials: []",
	// hashes, ids and numbers
	"commit 0123456789abcdef0123456789abcdef01234567", "git: 3f9a1c07e5b24d68a0f1c2d3e4b596870b1c2d3e", "sha256:3f9a1c07e5b24d68a0f1c2d3e4b596873f9a1c07e5b24d68a0f1c2d3e4b59687",
	"trace 550e8400-e29b-41d4-a716-446655440000 at 2026-06-12 10:30:00", "run-20260612_103000-a1b2c3d4", "wandb: Run data is saved locally in wandb/run-20260612_103000-a1b2c3d4", "wandb: 🚀 View run at https://wandb.ai/team/p/runs/a1b2c3d4",
	"wandb: Currently logged in as: ann (team). Use `wandb login --relogin` to force relogin", "wandb: Paste an API key from your profile and hit enter:", "wandb: Tracking run with wandb version 0.17.4",
	"wandb: WARNING key metrics 20260612", "wandb key loss 0.123", "wandb: commit 3f9a1c07e5b24d68a0f1c2d3e4b596870b1c2d3e", "traceparent 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"ncclUniqueId 0x5eed0000000000b2", "comm 0x7f9a1c07e5b2 rank 3", "image nvcr.io/nvidia/pytorch:24.01-py3@sha256:3f9a1c07e5b24d68a0f1c2d3e4b59687", "md5=0123456789abcdef0123456789abcdef", "digest: 3f9a1c07",
	"--world_info=eyJub2RlMSI6IFswLCAxLCAyLCAzXX0=", "--world_info=eyJub2RlMSI6IFswLCAxLCAyLCAzXX0= --master_addr=node1", "d41d8cd98f00b204e9800998ecf8427e  x.bin", "iteration 12/ 100 | lm loss: 9.87E+00 | grad norm: 1.2",
	"step:2 - actor/pg_loss:-1.2e-05 - perf/throughput:3283.32", "0x7fffdeadbeef00000000", "base64: QmFzZTY0IGVuY29kZWQgdGV4dA==",
	// names
	"sk-learn", "sk-learn-compatible-estimators", "sk-learn-compatible-estimators-v2", "dapier", "dapi", "hf_model_name", "hf_transformers_checkpoint_converter_v2", "hf_hub_download(repo_id='x')", "HF_HUB_ENABLE_HF_TRANSFER=1",
	"r8_dataset", "r8_dataset_v2_shuffled_0001", "npm_config_cache=/root/.npm", "npm_package_version", "gsk_kernel_v2", "xai-explainability-toolkit-for-models", "pypi-server", "pypi-mirror-config-v2-for-the-cluster",
	"nvapi-client", "SG.init()", "sg.step.12", "ya29", "dp.pt", "dp.pt.save", "torch.save(x, 'dp.pt')", "hvs.rate", "dckr_pat", "LTAI", "AKID", "AKLT", "akimbo", "asian-languages-corpus", "ASIAN", "eyJ", "eyjafjallajokull.is.a.volcano",
	"GOCSPX", "glc_norm", "ntn_layer", "pul-request", "sk_live_demo", "gho_st", "glpat", "xoxo-hugs", "xapp-model", "SK-HYNIX-DDR5-4800-MODULE-X2", "sig=0.5", "design=abc", "signature: (x: Tensor) -> Tensor",
	"function_signature=aten_conv2d_3x3_relu6", "Basic configuration", "Basic transformer block", "bearer of good news that nobody expected", "token bearer", "sts.amazonaws.com", "org/model-7B-Instruct-v0.2-GPTQ-4bit-128g",
	"Qwen2.5-72B-Instruct-AWQ", "s3://bucket/checkpoints/step_1000/model-00001-of-00030.safetensors",
	// commands and addresses
	"--port 8080", "-p8080", "-p 8080:80", "docker run -p 8080:80 -u 1000:1000 img", "docker run -u root:root img", "ssh -p 2222 ann@node-1", "mkdir -p /data/x", "python -u train.py --lr 1e-5", "['python', '-u', 'train.py', '--lr', '1e-5']",
	"mysql -h db -P 3306 -u ann x", "sshpass -e ssh node-1", "ps -u ann", "srun -p gpu -u ann:x python", "redis-cli -h head ping", "curl -s https://x/y", "curl -u ann https://x", "unzip -P", "git@github.com:org/repo", "user@host", "ann@corp.com",
	"ssh://git@github.com/org/repo", "git+ssh://git@github.com/org/repo.git@v1.2", "https://user@host/x", "https://huggingface.co/a/b@main:x", "http://node-1:8080/x", "tcp://10.0.0.1:29500", "https://registry.npmjs.org/@scope/pkg",
	"https://hooks.slack.com/services", "https://discord.com/invite/abcdefghijklmnop", "https://api.telegram.org/", "https://open.feishu.cn/document/server-docs/im-v1", "https://qyapi.weixin.qq.com/cgi-bin/gettoken",
	"['HF_TOKEN', 'WANDB_API_KEY', 'HOME']", "for name in ('api_key', ('a', 'b')):", "filter_params: ['password', 'token']", "login succeeded", "machine learning login page", "logged in as ann",
	"密码错误", "密钥长度: 256", "密码：", "请输入密码", "令牌数: 4096",
	"10:30:00 INFO [train.py:12] loss: 2.3, lr: 1e-5, mem: 12.3GB", "{'loss': 0.66, 'learning_rate': 3e-05, 'epoch': 1.0}", "| stage=FUNCTION_END | total_duration=1.2s | get_ratio=0.85% | timestamp=1781000000.1",
	"%3D%3A%22", "a=b%20c%3Dd", "\\nloss: 1", "--", "---", "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----",
}

func TestNoSecrets(t *testing.T) {
	r, err := New(DefaultConfig())
	require.NoError(t, err)
	for _, text := range benign {
		var n Counts
		assert.Equal(t, text, r.text(text, &n))
		assert.Zero(t, n, text)
	}
}
