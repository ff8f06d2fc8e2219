"""The models of `benchmarks.torch_families`: built without weights, small where their configuration allows it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

__all__ = ["FAMILIES", "MAKERS"]

BATCH = 2


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator())


IDS = torch.randint(3, 60, (BATCH, 12), generator=generator())


def squares(result) -> torch.Tensor:
    """A loss of whatever a model returns: each tensor that depends on parameters, its mean distance from 1, squared."""
    found = [
        x
        for x in tree_leaves(dict(result) if hasattr(result, "keys") else result)
        if isinstance(x, torch.Tensor) and x.is_floating_point() and x.requires_grad
    ]
    return sum((x - 1).square().mean() for x in found)


def given(model: nn.Module, inputs: dict, *, own: bool) -> torch.Tensor:
    """The loss that a model returns, or that of its results."""
    result = model(**inputs)
    return result.loss if own else squares(result)


# -- torchvision and timm ----------------------------------------------------------------------------------------------

#: model -> size of its images, options
VISION = {
    "alexnet": (64, {}),
    "convnext_tiny": (64, {}),
    "densenet121": (64, {}),
    "efficientnet_b0": (64, {}),
    "efficientnet_v2_s": (64, {}),
    "googlenet": (64, {"init_weights": False}),
    "inception_v3": (160, {"init_weights": False}),
    "maxvit_t": (224, {}),
    "mnasnet0_5": (64, {}),
    "mobilenet_v2": (64, {}),
    "mobilenet_v3_small": (64, {}),
    "regnet_x_400mf": (64, {}),
    "regnet_y_400mf": (64, {}),
    "resnet18": (64, {}),
    "resnext50_32x4d": (64, {}),
    "shufflenet_v2_x0_5": (64, {}),
    "squeezenet1_0": (64, {}),
    "swin_t": (64, {}),
    "swin_v2_t": (64, {}),
    "vgg11_bn": (64, {}),
    "vit_b_16": (32, {"image_size": 32}),
    "deeplabv3_mobilenet_v3_large": (64, {}),
    "fcn_resnet50": (64, {}),
    "lraspp_mobilenet_v3_large": (64, {}),
}
CLIPS = ("r3d_18", "mc3_18", "r2plus1d_18", "swin3d_t")
DETECTORS = (
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "maskrcnn_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
    "fcos_resnet50_fpn",
    "retinanet_resnet50_fpn",
    "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
)
#: module of timm, but those whose smallest model has more than 80 million parameters -> that model, size of its images
TIMM = {
    "byobnet": ("test_byobnet", 64),
    "cait": ("cait_xxs24_224", 64),
    "coat": ("coat_tiny", 64),
    "convit": ("convit_tiny", 64),
    "convmixer": ("convmixer_768_32", 64),
    "convnext": ("test_convnext", 64),
    "cpubone": ("cpubone_nano", 64),
    "crossvit": ("crossvit_tiny_240", 240),
    "csatv2": ("csatv2", 128),
    "cspnet": ("cs3darknet_focus_s", 64),
    "cspnext": ("cspnext_tiny", 64),
    "davit": ("davit_tiny", 64),
    "deit": ("deit_tiny_patch16_224", 64),
    "densenet": ("densenet121", 64),
    "dla": ("dla46x_c", 64),
    "dpn": ("dpn48b", 64),
    "edgenext": ("edgenext_xx_small", 64),
    "efficientformer": ("efficientformer_l1", 224),
    "efficientformer_v2": ("efficientformerv2_s0", 64),
    "efficientnet": ("test_efficientnet", 64),
    "efficientvim": ("efficientvim_m1", 64),
    "efficientvit_mit": ("efficientvit_b0", 64),
    "efficientvit_msra": ("efficientvit_m0", 64),
    "eva": ("eva02_tiny_patch14_224", 64),
    "fasternet": ("fasternet_t0", 64),
    "fastvit": ("fastvit_t8", 64),
    "focalnet": ("focalnet_tiny_srf", 64),
    "gcvit": ("gcvit_xxtiny", 64),
    "ghostnet": ("ghostnet_050", 64),
    "hardcorenas": ("hardcorenas_b", 64),
    "hgnet": ("hgnetv2_b0", 64),
    "hiera": ("hiera_tiny_224", 64),
    "hieradet_sam2": ("sam2_hiera_tiny", 128),
    "hrnet": ("hrnet_w18_small", 64),
    "iformer": ("iformer_t", 64),
    "inception_next": ("inception_next_atto", 64),
    "inception_v3": ("inception_v3", 128),
    "inception_v4": ("inception_v4", 128),
    "lcnetv2": ("lcnetv2_small", 64),
    "levit": ("levit_128", 64),
    "lowformer": ("lowformer_b0", 64),
    "mambaout": ("test_mambaout", 64),
    "maxxvit": ("test_coatnet", 64),
    "metaformer": ("poolformer_s12", 64),
    "mlp_mixer": ("gmlp_ti16_224", 64),
    "mobilenetv3": ("mobilenetv3_small_050", 64),
    "mobilevit": ("mobilevit_xxs", 64),
    "mvitv2": ("mvitv2_tiny", 64),
    "nest": ("nest_tiny", 64),
    "nextvit": ("nextvit_small", 64),
    "nfnet": ("test_nfnet", 64),
    "pit": ("pit_ti_224", 64),
    "pvt_v2": ("pvt_v2_b0", 64),
    "rdnet": ("rdnet_tiny", 64),
    "regnet": ("regnetx_004_tv", 64),
    "repghost": ("repghostnet_050", 64),
    "repvit": ("repvit_m1", 64),
    "res2net": ("res2next50", 64),
    "resnest": ("resnest14d", 64),
    "resnet": ("test_resnet", 64),
    "resnetv2": ("resnetv2_18", 64),
    "rexnet": ("rexnet_100", 64),
    "selecsls": ("selecsls42", 64),
    "senet": ("legacy_seresnet18", 64),
    "sequencer": ("sequencer2d_s", 64),
    "shvit": ("shvit_s1", 64),
    "sknet": ("skresnet18", 64),
    "starnet": ("starnet_s050", 64),
    "swiftformer": ("swiftformer_xs", 64),
    "swin_transformer": ("swin_tiny_patch4_window7_224", 64),
    "swin_transformer_v2": ("swinv2_tiny_window8_256", 64),
    "swin_transformer_v2_cr": ("swinv2_cr_tiny_384", 64),
    "tiny_vit": ("tiny_vit_5m_224", 64),
    "tnt": ("tnt_s_legacy_patch16_224", 64),
    "tresnet": ("tresnet_m", 64),
    "twins": ("twins_svt_small", 64),
    "visformer": ("visformer_tiny", 64),
    "vision_transformer": ("test_vit", 64),
    "vision_transformer_hybrid": ("vit_tiny_r_s16_p8_224", 64),
    "vision_transformer_relpos": ("test_vit_relpos", 64),
    "vitamin": ("vitamin_small_224", 64),
    "volo": ("volo_d2_224", 64),
    "vovnet": ("ese_vovnet19b_slim_dw", 64),
    "xception": ("xception", 128),
    "xception_aligned": ("xception41p", 64),
    "xcit": ("xcit_nano_12_p8_224", 64),
}


def torchvision_model(name: str):
    from torchvision import models

    options = (
        {"weights": None, "weights_backbone": None}
        if name in (*DETECTORS, "deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")
        else {}
    )
    if name == "raft_small":
        model, images = models.get_model(name), normal(1, 3, 128, 128)
        return model, lambda model, images: squares(model(images, images.flip(3), num_flow_updates=2)), images
    if name in DETECTORS:
        sizes = {} if name.startswith("ssd") else {"min_size": 96, "max_size": 128}
        model = models.get_model(name, num_classes=5, **sizes, **options)
        boxes = torch.tensor([[8.0, 8.0, 60.0, 50.0], [30.0, 20.0, 90.0, 80.0]])
        target = {
            "boxes": boxes,
            "labels": torch.tensor([1, 3]),
            "masks": torch.ones(2, 96, 96, dtype=torch.uint8),
            "keypoints": torch.ones(2, 17, 3) * 32,
        }
        if name.startswith("keypoint"):
            target["labels"] = torch.tensor([1, 1])

        def loss(model, inputs):
            images, targets = inputs
            return sum(model(images, targets).values())

        images = [x.sigmoid() for x in normal(BATCH, 3, 96, 96)]
        return model, loss, (images, [copy.deepcopy(target) for _ in images])
    size, more = (64, {}) if name in CLIPS else VISION[name]
    if name in CLIPS:
        model, x = models.get_model(name, num_classes=10), normal(BATCH, 3, 8, size, size)
    else:
        model, x = models.get_model(name, num_classes=10, **options, **more), normal(4, 3, size, size)
    return model, lambda model, x: squares(model(x)), x


def timm_model(name: str):
    import timm

    model, size = TIMM[name]
    try:
        made = timm.create_model(model, num_classes=10, img_size=size)
    except TypeError:
        made = timm.create_model(model, num_classes=10)
    return made, lambda model, x: squares(model(x)), normal(BATCH, 3, size, size)


# -- Transformers ------------------------------------------------------------------------------------------------------

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS = {"num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2}
_CODERS = {
    "vocab_size": 64,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
_VIT = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_labels": 10,
}
_STAGES = {
    "depths": [1, 1, 2, 1],
    "hidden_sizes": [16, 32, 48, 64],
    "num_labels": 10,
    "embed_dim": 16,
    "image_size": 64,
}
_SPEECH = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 32,
    "conv_dim": (16, 16, 16),
    "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "mask_time_prob": 0.0,
    "apply_spec_augment": False,
    "num_codevectors_per_group": 8,
}
_MLA = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "n_shared_experts": 1,
    "num_key_value_heads": 4,
}
#: family -> the class of the model without "AutoModel", what it is fed with, options of its configuration
LANGUAGE = {
    **dict.fromkeys(
        (
            "llama",
            "mistral",
            "qwen2",
            "qwen3",
            "gemma",
            "gemma2",
            "gemma3_text",
            "phi",
            "phi3",
            "stablelm",
            "starcoder2",
            "gpt_neox",
            "cohere",
            "granite",
            "olmo",
            "olmo2",
            "glm",
            "persimmon",
            "nemotron",
            "smollm3",
            "helium",
            "ernie4_5",
            "exaone4",
            "biogpt",
            "rembert",
            "modernbert-decoder",
            "minimax",
            "diffllama",
            "bitnet",
            "apertus",
            "arcee",
            "seed_oss",
            "hunyuan_v1_dense",
        ),
        ("ForCausalLM", "text", SIZES),
    ),
    **{
        name: ("ForCausalLM", "text", SIZES | _EXPERTS | {"moe_intermediate_size": 32})
        for name in (
            "mixtral",
            "qwen2_moe",
            "qwen3_moe",
            "olmoe",
            "phimoe",
            "granitemoe",
            "gpt_oss",
            "jetmoe",
        )
    },
    "deepseek_v2": ("ForCausalLM", "text", SIZES | _EXPERTS | _MLA),
    "deepseek_v3": ("ForCausalLM", "text", SIZES | _EXPERTS | _MLA),
    "llama4_text": ("ForCausalLM", "text", SIZES | _EXPERTS | {"intermediate_size_mlp": 64}),
    "qwen3_next": (
        "ForCausalLM",
        "text",
        SIZES
        | _EXPERTS
        | {
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "num_hidden_layers": 4,
        },
    ),
    "jamba": (
        "ForCausalLM",
        "text",
        SIZES
        | _EXPERTS
        | {
            "use_mamba_kernels": False,
            "num_hidden_layers": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "mamba_d_state": 8,
        },
    ),
    "bamba": (
        "ForCausalLM",
        "text",
        SIZES | {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "attn_layer_indices": [1]},
    ),
    "zamba2": (
        "ForCausalLM",
        "text",
        SIZES
        | {
            "mamba_d_state": 8,
            "n_mamba_heads": 8,
            "num_hidden_layers": 2,
            "layers_block_type": ["mamba", "hybrid"],
            "num_key_value_heads": 4,
            "use_mem_rope": False,
            "num_mem_blocks": 1,
        },
    ),
    "mamba": ("ForCausalLM", "text", SIZES | {"state_size": 8, "time_step_rank": 4}),
    "mamba2": (
        "ForCausalLM",
        "text",
        SIZES | {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8},
    ),
    "falcon_mamba": ("ForCausalLM", "text", SIZES | {"state_size": 8, "time_step_rank": 4}),
    "recurrent_gemma": ("ForCausalLM", "text", SIZES | {"lru_width": 32, "num_hidden_layers": 3}),
    "rwkv": (
        "ForCausalLM",
        "text",
        {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 64},
    ),
    "lfm2": ("ForCausalLM", "text", SIZES | {"full_attn_idxs": [1], "num_hidden_layers": 2}),
    "gpt2": ("ForCausalLM", "text", SIZES | {"n_positions": 64}),
    "gpt_neo": (
        "ForCausalLM",
        "text",
        SIZES | {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    ),
    "gptj": ("ForCausalLM", "text", SIZES | {"rotary_dim": 8, "n_positions": 64}),
    "gpt_bigcode": ("ForCausalLM", "text", SIZES | {"n_positions": 64}),
    "codegen": ("ForCausalLM", "text", SIZES | {"rotary_dim": 8, "n_positions": 64}),
    "opt": ("ForCausalLM", "text", SIZES | {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bloom": ("ForCausalLM", "text", SIZES | {"n_head": 4, "n_layer": 2}),
    "falcon": ("ForCausalLM", "text", {k: v for k, v in SIZES.items() if k != "head_dim"}),
    "mpt": ("ForCausalLM", "text", {"vocab_size": 64, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    "ctrl": ("ForCausalLM", "text", SIZES | {"dff": 64, "n_positions": 64}),
    "openai-gpt": ("ForCausalLM", "text", SIZES | {"n_positions": 64}),
    "xglm": ("ForCausalLM", "text", SIZES | {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4}),
    "xlnet": ("ForCausalLM", "text", {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    "dbrx": (
        "ForCausalLM",
        "text",
        {
            "vocab_size": 64,
            "d_model": 32,
            "n_heads": 4,
            "n_layers": 2,
            "max_seq_len": 64,
            "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2, "hidden_size": 32},
            "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
        },
    ),
    **dict.fromkeys(
        (
            "bert",
            "roberta",
            "deberta",
            "deberta-v2",
            "electra",
            "megatron-bert",
            "mpnet",
            "roformer",
            "convbert",
            "esm",
            "layoutlm",
            "nystromformer",
            "ernie",
            "camembert",
            "data2vec-text",
            "eurobert",
            "fnet",
            "roberta-prelayernorm",
        ),
        ("ForMaskedLM", "text", SIZES),
    ),
    "squeezebert": ("ForMaskedLM", "text", SIZES | {"embedding_size": 32}),
    "xmod": ("ForMaskedLM", "text", SIZES | {"languages": ["en"], "default_language": "en"}),
    "albert": ("ForMaskedLM", "text", SIZES | {"embedding_size": 16}),
    "distilbert": ("ForMaskedLM", "text", {"vocab_size": 64, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4}),
    "mobilebert": (
        "ForMaskedLM",
        "text",
        SIZES | {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    ),
    "modernbert": (
        "ForMaskedLM",
        "text",
        SIZES | {"cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 2},
    ),
    "funnel": (
        "ForMaskedLM",
        "text",
        {
            "vocab_size": 64,
            "block_sizes": [1, 1],
            "d_model": 32,
            "n_head": 4,
            "d_head": 8,
            "d_inner": 64,
            "num_decoder_layers": 1,
        },
    ),
    "longformer": ("ForMaskedLM", "text", SIZES | {"attention_window": 4}),
    "big_bird": ("ForMaskedLM", "text", SIZES | {"attention_type": "original_full"}),
    "reformer": (
        "ForMaskedLM",
        "text",
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "attention_head_size": 8,
            "num_attention_heads": 4,
            "feed_forward_size": 64,
            "attn_layers": ["local"],
            "axial_pos_shape": [3, 4],
            "axial_pos_embds_dim": [16, 16],
            "local_attn_chunk_length": 4,
            "is_decoder": False,
        },
    ),
    "xlm": (
        "ForMaskedLM",
        "text",
        {"vocab_size": 64, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64},
    ),
    **dict.fromkeys(
        (
            "bart",
            "mbart",
            "pegasus",
            "marian",
            "m2m_100",
            "blenderbot",
            "blenderbot-small",
            "plbart",
            "mvp",
            "pegasus_x",
            "bigbird_pegasus",
        ),
        ("ForSeq2SeqLM", "both", _CODERS),
    ),
    "led": (
        "ForSeq2SeqLM",
        "both",
        _CODERS | {"attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64},
    ),
    "prophetnet": (
        "ForSeq2SeqLM",
        "both",
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "pad_token_id": 0,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "ngram": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "decoder_start_token_id": 1,
        },
    ),
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "switch_transformers"), ("ForSeq2SeqLM", "both", _T5)),
    "nllb-moe": (
        "ForSeq2SeqLM",
        "both",
        _CODERS | {"num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
    ),
}
SIGHT = {
    **dict.fromkeys(
        ("vit", "beit", "dinov2", "dinov2_with_registers", "vit_msn", "data2vec-vision", "ijepa"),
        ("ForImageClassification", "image", _VIT),
    ),
    "hiera": (
        "ForImageClassification",
        "image",
        {"image_size": [64, 64], "embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2]},
    ),
    "swin": (
        "ForImageClassification",
        "image",
        _STAGES | {"num_heads": [1, 2, 2, 4], "window_size": 2, "hidden_size": None},
    ),
    "swinv2": ("ForImageClassification", "image", _STAGES | {"num_heads": [1, 2, 2, 4], "window_size": 2}),
    "convnext": ("ForImageClassification", "image", _STAGES),
    "convnextv2": ("ForImageClassification", "image", _STAGES),
    "resnet": ("ForImageClassification", "image", _STAGES | {"embedding_size": 16, "layer_type": "basic"}),
    "regnet": ("ForImageClassification", "image", _STAGES | {"embedding_size": 16, "groups_width": 8}),
    "bit": ("ForImageClassification", "image", _STAGES | {"embedding_size": 16, "num_groups": 4}),
    "segformer": (
        "ForSemanticSegmentation",
        "pixels",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 16, 24, 32],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
            "num_labels": 10,
        },
    ),
    "mobilenet_v1": ("ForImageClassification", "image", {"depth_multiplier": 0.25}),
    "mobilenet_v2": ("ForImageClassification", "image", {"depth_multiplier": 0.35}),
    "mobilevit": ("ForImageClassification", "image", {"image_size": 64}),
    "mobilevitv2": ("ForImageClassification", "image", {"image_size": 64, "width_multiplier": 0.5}),
    "poolformer": ("ForImageClassification", "image", _STAGES),
    "focalnet": ("ForImageClassification", "image", _STAGES),
    "pvt": ("ForImageClassification", "image", _STAGES | {"num_attention_heads": [1, 2, 2, 4]}),
    "pvt_v2": ("ForImageClassification", "image", _STAGES | {"num_attention_heads": [1, 2, 2, 4]}),
    "swiftformer": (
        "ForImageClassification",
        "image",
        {"depths": [1, 1, 1, 1], "embed_dims": [8, 16, 24, 32], "image_size": 64},
    ),
    "imagegpt": ("ForImageClassification", "tokens", SIZES | {"n_positions": 64}),
    "vit_mae": (
        "ForPreTraining",
        "image alone",
        _VIT
        | {
            "decoder_hidden_size": 16,
            "decoder_num_hidden_layers": 1,
            "decoder_num_attention_heads": 2,
            "decoder_intermediate_size": 32,
        },
    ),
    "videomae": ("ForVideoClassification", "clip", _VIT | {"num_frames": 4}),
    "timesformer": ("ForVideoClassification", "clip", _VIT | {"num_frames": 4}),
    "vivit": ("ForVideoClassification", "clip", _VIT | {"num_frames": 4, "tubelet_size": [2, 8, 8]}),
    "dpt": (
        "ForDepthEstimation",
        "image alone",
        _VIT
        | {
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 8, 8],
            "fusion_hidden_size": 8,
            "is_hybrid": False,
        },
    ),
    "glpn": (
        "ForDepthEstimation",
        "image alone",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 16, 24, 32],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 8,
        },
    ),
    "detr": (
        "ForObjectDetection",
        "boxes",
        {
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "num_queries": 5,
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "backbone": None,
        },
    ),
    "yolos": ("ForObjectDetection", "boxes", _VIT | {"image_size": [32, 32], "num_detection_tokens": 5}),
    "sam_vision_model": (
        "",
        "image alone",
        _VIT
        | {"image_size": 32, "output_channels": 8, "global_attn_indexes": [1], "window_size": 2, "num_pos_feats": 8},
    ),
}
HEARING = {
    **dict.fromkeys(
        (
            "wav2vec2",
            "hubert",
            "wavlm",
            "unispeech",
            "unispeech-sat",
            "sew",
            "sew-d",
            "data2vec-audio",
            "wav2vec2-conformer",
        ),
        ("ForCTC", "speech", _SPEECH),
    ),
    "whisper": (
        "ForSpeechSeq2Seq",
        "spectrum",
        _CODERS | {"num_mel_bins": 8, "max_source_positions": 24, "max_target_positions": 64},
    ),
    "speech_to_text": (
        "ForSpeechSeq2Seq",
        "features",
        _CODERS
        | {"input_feat_per_channel": 8, "max_source_positions": 64, "max_target_positions": 64, "conv_channels": 16},
    ),
    "audio-spectrogram-transformer": (
        "ForAudioClassification",
        "spectrogram",
        _VIT | {"num_mel_bins": 16, "max_length": 32},
    ),
}
_TEXT = {k: v for k, v in SIZES.items() if k not in ("num_key_value_heads", "head_dim")}
_EYE = {k: v for k, v in _VIT.items() if k != "num_labels"}
MIXED = {
    **{
        name: ("", "pairs", {"text_config": _TEXT, "vision_config": _EYE, "projection_dim": 16})
        for name in (
            "clip",
            "siglip",
            "chinese_clip",
            "altclip",
            "clipseg",
            "metaclip_2",
        )
    },
    "blip": (
        "",
        "pairs",
        {
            "text_config": _TEXT | {"encoder_hidden_size": 32},
            "vision_config": _EYE,
            "projection_dim": 16,
            "image_text_hidden_size": 16,
        },
    ),
    "vilt": ("", "pairs", _VIT | _TEXT),
}


def inputs_of(kind: str, size: int) -> dict:
    """What a model of Transformers is called with, by what it is fed with."""
    image, label = normal(BATCH, 3, size, size), torch.tensor([1, 3])
    return {
        "text": lambda: {"input_ids": IDS, "labels": IDS},
        "tokens": lambda: {"input_ids": IDS, "labels": label % 2},
        "both": lambda: {"input_ids": IDS, "labels": IDS.flip(1)},
        "image": lambda: {"pixel_values": image, "labels": label % 2},
        "image alone": lambda: {"pixel_values": image},
        "pixels": lambda: {
            "pixel_values": image,
            "labels": torch.arange(size * size).view(1, size, size).repeat(BATCH, 1, 1) % 10,
        },
        "clip": lambda: {"pixel_values": normal(BATCH, 4, 3, size, size), "labels": label % 2},
        "boxes": lambda: {
            "pixel_values": image,
            "labels": [
                {
                    "class_labels": torch.tensor([1, 2]),
                    "boxes": torch.tensor([[0.4, 0.5, 0.3, 0.2], [0.6, 0.3, 0.2, 0.4]]),
                }
                for _ in range(BATCH)
            ],
        },
        "speech": lambda: {"input_values": normal(BATCH, 800), "labels": IDS[:, :5] % 30 + 1},
        "spectrum": lambda: {"input_features": normal(BATCH, 8, 48), "labels": IDS},
        "features": lambda: {"input_features": normal(BATCH, 40, 8), "labels": IDS},
        "spectrogram": lambda: {"input_values": normal(BATCH, 32, 16), "labels": label % 2},
        "pairs": lambda: {"input_ids": IDS, "attention_mask": torch.ones_like(IDS), "pixel_values": image},
    }[kind]()


def transformers_model(name: str):
    import transformers

    head, kind, options = (LANGUAGE | SIGHT | HEARING | MIXED)[name]
    config = transformers.AutoConfig.for_model(name, **options)
    for part in (config, *(getattr(config, key, None) for key in ("text_config", "vision_config"))):
        for key, value in vars(part).items() if part is not None else ():
            if isinstance(value, float) and ("drop" in key or key.endswith("pdrop")):
                setattr(part, key, 0.0)
    model = getattr(transformers, f"AutoModel{head}").from_config(config)
    size = options.get("image_size", 64)
    size = size[0] if isinstance(size, list) else size
    inputs = inputs_of(kind, 32 if kind == "pairs" else size)
    return model, lambda model, inputs: given(model, inputs, own="labels" in inputs), inputs


MAKERS: dict[str, Callable] = {"torchvision": torchvision_model, "timm": timm_model, "transformers": transformers_model}
#: all that is run: library and family
FAMILIES = (
    *(("torchvision", name) for name in (*VISION, *CLIPS, *DETECTORS, "raft_small")),
    *(("timm", name) for name in TIMM),
    *(("transformers", name) for name in LANGUAGE | SIGHT | HEARING | MIXED),
)
