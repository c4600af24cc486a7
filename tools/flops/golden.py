#!/usr/bin/env python3
"""Makes the numbers that train_perf's FLOP counts are tested against, by running the originals.

    git clone https://github.com/NVIDIA/Megatron-LM && git -C Megatron-LM checkout d98e8a64
    git clone https://github.com/xiaodouzi666/FlagScale-new-feature && git -C FlagScale-new-feature checkout e5899478
    python3 tools/flops/golden.py Megatron-LM FlagScale-new-feature > processors/trainperfprocessor/internal/flops/testdata/golden.json

Python 3.11, nothing to install: only the functions that count are taken out of their files, so that torch is not imported.
The arguments are those of Megatron's examples/post_training/modelopt/conf for Nemotron, and of the published config.json for Qwen3-Next;
what Megatron's validate_args fills in is written out. They are in the file as Megatron prints them.
"""

import ast
import json
import logging
import sys
import types
import typing
from pathlib import Path


def take(path, names, scope):
    """Runs the definitions of these names of a file, and nothing else of it."""
    tree = ast.parse(path.read_text())
    body = []
    for node in tree.body:
        targets = [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []
        if getattr(node, "name", None) in names or any(t in names for t in targets):
            body.append(node)
    found = {getattr(n, "name", None) for n in body} | {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets}
    assert set(names) <= found, (path, names, found)
    exec(compile(ast.Module(body, []), str(path), "exec"), scope)


def megatron(root):
    from dataclasses import dataclass

    hybrid = {"dataclass": dataclass, "Optional": typing.Optional, "Dict": typing.Dict, "List": typing.List}
    take(root / "megatron/core/models/hybrid/hybrid_layer_allocation.py",
         ["Symbols", "ParsedHybridPattern", "parse_hybrid_pattern", "_validate_pattern", "get_hybrid_layer_counts"], hybrid)
    for name in ["megatron", "megatron.core", "megatron.core.models", "megatron.core.models.hybrid"]:
        sys.modules[name] = types.ModuleType(name)
    module = types.ModuleType("megatron.core.models.hybrid.hybrid_layer_allocation")
    module.__dict__.update(hybrid)
    sys.modules[module.__name__] = module
    scope = {"Optional": typing.Optional}
    take(root / "megatron/core/models/gpt/experimental_attention_variant_module_specs.py",
         ["GDN_ATTENTION_VARIANTS", "_DEPRECATED_ATTENTION_VARIANT_ALIASES", "is_gated_delta_net_variant", "is_linear_attention_variant"], scope)
    take(root / "megatron/training/utils/common_utils.py", ["is_hybrid_model"], scope)
    take(root / "megatron/training/training.py", ["num_floating_point_operations"], scope)
    return lambda args, batch: scope["num_floating_point_operations"](types.SimpleNamespace(**args), batch)


def perf_monitor(root):
    """ModelFLOPSCalculator of the branch douzi."""
    scope = {name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional")}
    take(root / "flagscale/train/perf_monitor/flops_calculator.py", ["FLOPSFormulas"], scope)
    take(root / "flagscale/train/perf_monitor/perf_metrics.py", ["ModelFLOPSCalculator"], scope)

    def count(args, batch):
        calculator = scope["ModelFLOPSCalculator"](types.SimpleNamespace(**args))
        return calculator.model_type, calculator.calculate_total_flops(batch)

    return count


DEFAULTS = dict(
    num_layers=None, hidden_size=None, ffn_hidden_size=None, num_attention_heads=None, kv_channels=128, seq_length=8192, padded_vocab_size=131072,
    group_query_attention=True, num_query_groups=8, swiglu=False, attention_output_gate=False, mtp_num_layers=None,
    num_experts=None, moe_router_topk=2, moe_ffn_hidden_size=None, moe_shared_expert_intermediate_size=None, moe_latent_size=None, moe_layer_freq=1,
    multi_latent_attention=False, q_lora_rank=None, kv_lora_rank=32, qk_head_dim=128, qk_pos_emb_head_dim=64, v_head_dim=128,
    experimental_attention_variant=None, linear_attention_freq=None, linear_key_head_dim=128, linear_value_head_dim=128, linear_num_key_heads=16,
    linear_num_value_heads=32, linear_conv_kernel_dim=4,
    hybrid_layer_pattern=None, mamba_state_dim=128, mamba_head_dim=64, mamba_num_groups=8, mamba_num_heads=None, gdp_num_householder=1, spec=None,
)

NEMOTRON_H_8B = dict(
    num_layers=52, hidden_size=4096, ffn_hidden_size=21504, num_attention_heads=32, mamba_num_heads=128, seq_length=4096,
    hybrid_layer_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
)
NANO = dict(
    num_layers=52, hidden_size=2688, ffn_hidden_size=1856, num_attention_heads=32, num_query_groups=2, mamba_num_heads=64, num_experts=128, moe_router_topk=6,
    moe_shared_expert_intermediate_size=3712, moe_ffn_hidden_size=1856,
    hybrid_layer_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
)
SUPER = dict(
    num_layers=88, hidden_size=4096, ffn_hidden_size=2688, num_attention_heads=32, num_query_groups=2, mamba_num_heads=128, num_experts=512, moe_router_topk=22,
    moe_shared_expert_intermediate_size=5376, moe_ffn_hidden_size=2688, moe_latent_size=1024,
    hybrid_layer_pattern="MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
)
QWEN3_NEXT = dict(
    num_layers=48, hidden_size=2048, ffn_hidden_size=5120, num_attention_heads=16, num_query_groups=2, kv_channels=256, padded_vocab_size=151936, swiglu=True,
    attention_output_gate=True, num_experts=512, moe_router_topk=10, moe_ffn_hidden_size=512, moe_shared_expert_intermediate_size=512,
    experimental_attention_variant="gated_delta_net", linear_attention_freq=4,
)
MODELS = {
    "nemotron_h_8b": (768, NEMOTRON_H_8B),
    "nemotron_h_47b": (64, dict(
        num_layers=98, hidden_size=8192, ffn_hidden_size=30720, num_attention_heads=64, mamba_num_heads=256, mamba_state_dim=256,
        hybrid_layer_pattern="M-M-M-M-M-M-M-M-M*-M-M-M-M-M-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-M-M---MM---M-M*-M-M-M-M-M-")),
    "nemotron_3_nano_30b": (3072, NANO),
    "nemotron_3_super_120b": (3072, SUPER),
    "nemotron_3_super_mtp": (3072, SUPER | dict(mtp_num_layers=2, hybrid_layer_pattern=SUPER["hybrid_layer_pattern"].replace("EMEMEMEM*", "EMEMEMEM*|", 1) + "/*E/*E")),
    "hybrid_defaults": (8, NEMOTRON_H_8B | dict(mamba_num_heads=None, mamba_head_dim=80, mamba_num_groups=4, swiglu=True, group_query_attention=False, num_query_groups=1)),
    "hybrid_gdn": (8, NEMOTRON_H_8B | dict(hybrid_layer_pattern="G-G-G*-M-", num_layers=9, experimental_attention_variant="gdn2")),
    "qwen3_next_80b": (1024, QWEN3_NEXT),
    "qwen3_next_mtp": (1024, QWEN3_NEXT | dict(mtp_num_layers=1, experimental_attention_variant="gdn")),
    "gdn_list": (16, QWEN3_NEXT | dict(num_layers=6, linear_attention_freq=[1, 0, 1, 1, 0, 1], moe_layer_freq=[0, 1, 0, 1, 1, 0], linear_key_head_dim=64, linear_value_head_dim=96,
                                       linear_num_key_heads=4, linear_num_value_heads=8, linear_conv_kernel_dim=3)),
    "gdn2": (16, QWEN3_NEXT | dict(experimental_attention_variant="gdn2", linear_attention_freq=3)),
    "moe_latent": (512, dict(
        num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32, swiglu=True, num_experts=128, moe_router_topk=8, moe_ffn_hidden_size=2048,
        moe_shared_expert_intermediate_size=2048, moe_latent_size=1024, moe_layer_freq=[0] * 2 + [1] * 30, mtp_num_layers=1)),
    "deepseek_v3_dsa": (15360, dict(
        num_layers=61, hidden_size=7168, ffn_hidden_size=18432, num_attention_heads=128, group_query_attention=False, num_query_groups=1, kv_channels=128,
        padded_vocab_size=129280, seq_length=4096, swiglu=True, num_experts=256, moe_router_topk=8, moe_ffn_hidden_size=2048, moe_shared_expert_intermediate_size=2048,
        moe_layer_freq=[0] * 3 + [1] * 58, multi_latent_attention=True, q_lora_rank=1536, kv_lora_rank=512, mtp_num_layers=1, experimental_attention_variant="dsa")),
}

# What perf_monitor sees: it takes vocab_size as it is, and the model's name where there is one. Megatron has no argument model_name.
LLAMA3_8B = dict(num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32, num_query_groups=8, kv_channels=128, seq_length=8192, vocab_size=128256,
                 swiglu=True)
MIXTRAL = dict(num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32, num_query_groups=8, kv_channels=128, seq_length=4096, vocab_size=32000, swiglu=True,
               num_experts=8, moe_router_topk=2)
PERF_MONITOR = {
    "llama3_8b": (16, LLAMA3_8B | dict(model_name="llama3-8b")),
    "llama3_8b_without_name": (16, LLAMA3_8B),
    "qwen2.5_7b_without_name": (16, dict(num_layers=28, hidden_size=3584, ffn_hidden_size=18944, num_attention_heads=28, num_query_groups=4, kv_channels=128, seq_length=4096,
                                         vocab_size=152064, swiglu=True)),
    "mixtral_8x7b": (16, MIXTRAL),
    "mixtral_8x7b_swiglu_left_out": (16, MIXTRAL | dict(swiglu=False)),
}

if __name__ == "__main__":
    logging.disable()
    count, monitor = megatron(Path(sys.argv[1])), perf_monitor(Path(sys.argv[2]))
    out = {"megatron": {}, "perf_monitor_douzi": {}}
    for name, (batch, changed) in MODELS.items():
        args = DEFAULTS | changed
        printed = {k: str(v) for k, v in sorted(args.items())}
        flops = count(args, batch)
        out["megatron"][name] = {"batch_size": batch, "flops": flops, "arguments": printed}
    for name, (batch, args) in PERF_MONITOR.items():
        kind, flops = monitor(args, batch)
        out["perf_monitor_douzi"][name] = {"batch_size": batch, "model_type": kind, "flops": flops, "arguments": {k: str(v) for k, v in sorted(args.items())}}
    json.dump(out, sys.stdout, indent=1)
    print()
