"""The models of the zoo: small configurations and inputs of classes of public libraries."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from zoo_jax import JAX_MODELS

TRANSFORMERS = """
AlbertModel ASTModel BartModel BeitModel BertModel BertGenerationEncoder BigBirdModel BioGptModel
BitModel BitNetModel BlenderbotModel BlipModel BloomModel CamembertModel CanineModel
ChineseCLIPModel CLIPModel CLIPSegModel CodeGenModel CohereModel Cohere2Model ConditionalDetrModel
ConvBertModel ConvNextModel ConvNextV2Model CTRLModel CvtModel DabDetrModel Data2VecAudioModel
Data2VecTextModel Data2VecVisionModel DbrxModel DebertaModel DebertaV2Model DeepseekV2Model
DeepseekV3Model DeformableDetrModel DeiTModel DetrModel DiffLlamaModel Dinov2Model
Dinov2WithRegistersModel DINOv3ViTModel DINOv3ConvNextModel DistilBertModel DonutSwinModel
DPRContextEncoder DPTModel EfficientNetModel ElectraModel ErnieModel Ernie4_5Model EsmModel
Exaone4Model FalconModel FalconH1Model FalconMambaModel FlaubertModel FNetModel FocalNetModel
FunnelModel GemmaModel Gemma2Model Gemma3TextModel GitModel GlmModel Glm4Model Glm4MoeModel
GLPNModel GPT2Model GPTBigCodeModel GPTNeoModel GPTNeoXModel GPTNeoXJapaneseModel GptOssModel
GPTJModel GraniteModel GraniteMoeModel GroupViTModel HeliumModel HieraModel HubertModel IBertModel
IJepaModel ImageGPTModel JambaModel JetMoeModel LayoutLMModel LayoutLMv3Model LEDModel LevitModel
Lfm2Model LiltModel LlamaModel Llama4TextModel LongformerModel LongT5Model LukeModel M2M100Model
MambaModel Mamba2Model MarianModel MarkupLMModel MBartModel MegatronBertModel MiniMaxModel
MinistralModel MistralModel MixtralModel MobileBertModel MobileNetV1Model MobileNetV2Model
MobileViTModel MobileViTV2Model ModernBertModel MPNetModel MptModel MT5Model MvpModel
NemotronModel NystromformerModel OlmoModel Olmo2Model Olmo3Model OlmoeModel OpenAIGPTModel
OPTModel OwlViTModel PegasusModel PersimmonModel PhiModel Phi3Model PhimoeModel PLBartModel
PoolFormerModel PvtModel PvtV2Model Qwen2Model Qwen2MoeModel Qwen3Model Qwen3MoeModel
Qwen3NextModel RecurrentGemmaModel ReformerModel RegNetModel RemBertModel ResNetModel RobertaModel
RobertaPreLayerNormModel RoCBertModel RoFormerModel RTDetrModel RwkvModel SeedOssModel
SegformerModel SEWModel SEWDModel SiglipModel SmolLM3Model Speech2TextModel SplinterModel
SqueezeBertModel StableLmModel Starcoder2Model SwiftFormerModel SwinModel Swin2SRModel Swinv2Model
SwitchTransformersModel T5Model TimesformerModel UMT5Model UniSpeechModel VideoMAEModel ViltModel
VisualBertModel ViTModel ViTMAEModel ViTMSNModel VitDetModel VivitModel Wav2Vec2Model
Wav2Vec2BertModel Wav2Vec2ConformerModel WavLMModel WhisperModel XGLMModel XLMModel
XLMRobertaModel XLNetModel XmodModel YolosModel YosoModel BertForQuestionAnswering
BertForTokenClassification GPT2LMHeadModel LlamaForCausalLM T5ForConditionalGeneration
WhisperForConditionalGeneration ViTForImageClassification SegformerForSemanticSegmentation
"""

TIMM = """
test_byobnet test_convnext test_convnext2 test_coatnet test_efficientnet test_efficientnet_evos
test_efficientnet_gn test_mambaout test_maxvit test_nfnet test_resnet test_vit test_vit2
test_vit_relpos beit_base_patch16_224 cait_xxs24_224 coat_tiny convit_tiny convmixer_768_32
crossvit_tiny_240 cspresnet50 deit_tiny_patch16_224 densenet121 dla34 edgenext_xx_small
efficientformer_l1 efficientformerv2_s0 efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224
fasternet_t0 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny ghostnet_050 hgnetv2_b0 hiera_tiny_224
hrnet_w18_small inception_next_atto inception_v3 inception_v4 lcnet_050 levit_128s mixer_s32_224
gmlp_s16_224 resmlp_12_224 mobilenetv3_small_050 mobilenetv4_conv_small_050 mobilevit_xxs
mobilevitv2_050 mvitv2_tiny nest_tiny nextvit_small nf_regnet_b0 pit_ti_224 poolformer_s12
caformer_s18 pvt_v2_b0 regnetx_002 regnety_002 repghostnet_050 repvit_m0_9 res2net50_14w_8s
resnest14d resnetv2_50 rexnet_100 seresnet18 sequencer2d_s skresnet18 starnet_s1 swiftformer_xs
swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swinv2_cr_tiny_224 tiny_vit_5m_224
tnt_s_legacy_patch16_224 twins_pcpvt_small vgg11 visformer_tiny volo_d1_224 vovnet39a xception41
xcit_nano_12_p16_224
"""

TORCHVISION = """
alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3
maxvit_t mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18
resnet50 resnext50_32x4d wide_resnet50_2 shufflenet_v2_x0_5 squeezenet1_0 swin_t swin_v2_t
vgg11_bn vit_b_32 segmentation.fcn_resnet50 segmentation.deeplabv3_mobilenet_v3_large
segmentation.lraspp_mobilenet_v3_large video.r3d_18 video.mc3_18 video.r2plus1d_18 video.mvit_v1_b
video.s3d video.swin3d_t optical_flow.raft_small
"""

DIFFUSERS = """
UNet1DModel UNet2DModel UNet2DConditionModel UNet3DConditionModel UNetMotionModel AutoencoderKL
AutoencoderTiny AsymmetricAutoencoderKL VQModel AutoencoderOobleck DiTTransformer2DModel
PixArtTransformer2DModel SD3Transformer2DModel FluxTransformer2DModel SanaTransformer2DModel
HunyuanDiT2DModel Transformer2DModel PriorTransformer UVit2DModel ControlNetModel
AuraFlowTransformer2DModel
"""

TORCH = """
LSTM GRU RNN LSTMCell GRUCell BiLSTM TwoLayerGRU Transformer TransformerEncoder TransformerDecoder
MultiheadAttention Embedding BatchedMLP
"""


NAMES = [
    f"{library}/{name}"
    for library, text in (
        ("transformers", TRANSFORMERS),
        ("timm", TIMM),
        ("torchvision", TORCHVISION),
        ("diffusers", DIFFUSERS),
        ("torch", TORCH),
    )
    for name in text.split()
] + [*JAX_MODELS]


@dataclass(frozen=True)
class Model:
    """A model with arguments that are drawn, alike for every library."""

    compile: Callable[..., Path]
    arguments: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]
    """Arguments by the seed that they are drawn from."""
    expected: Callable[[int], Any]
    """Results of the framework for the arguments of a seed."""
    source: Callable[[], tuple[str, list[np.ndarray]]]
    """The text that is compiled, and the weights that are its first arguments."""


def load_libraries() -> None:
    """Imports what models are made of, once for all processes that are forked."""
    import ttcodegen.torch
    import ttcodegen.transforms

    for name in ("torch", "transformers.modeling_utils", "timm", "torchvision", "diffusers"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"# {name}: {error}")
    assert ttcodegen.torch


def made(name: str) -> Model:
    """The model of a name of `NAMES`."""
    library, _, kind = name.partition("/")
    if library in ("flax", "equinox", "jax"):
        return _of_jax(*JAX_MODELS[name]())
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, draw = globals()[f"_{library}"](kind)
    return _of_torch(module.eval().float(), draw)


def _of_torch(module: Any, draw: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]) -> Model:
    import torch

    import ttcodegen.torch

    def arguments(seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        torch.manual_seed(seed)
        return draw()

    def compile(out: Path, **options: Any) -> Path:
        args, kwargs = arguments(0)
        return ttcodegen.torch.compile(module, args, kwargs, out=out, force=True, **options)

    def expected(seed: int) -> Any:
        args, kwargs = arguments(seed)
        with torch.no_grad():
            return module(*args, **kwargs)

    def arrays(seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return torch.utils._pytree.tree_map(
            lambda each: each.numpy() if isinstance(each, torch.Tensor) else each, arguments(seed)
        )

    def source() -> tuple[str, list[np.ndarray]]:
        functions = ttcodegen.torch.functions_of(module, *arguments(0))
        model = ttcodegen.torch.model_of(functions, run=False)
        return model.source.text, list(model.functions[0].weights.values())

    return Model(compile, arrays, expected, source)


def _of_jax(function: Any, params: Any, draw: Callable[[Any], tuple[Any, ...]]) -> Model:
    import ttcodegen.jax

    def arguments(seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return draw(np.random.default_rng(seed)), {}

    def compile(out: Path, **options: Any) -> Path:
        args = arguments(0)[0]
        return ttcodegen.jax.compile(function, *args, params=params, out=out, force=True, **options)

    def expected(seed: int) -> Any:
        return function(params, *arguments(seed)[0])

    def source() -> tuple[str, list[np.ndarray]]:
        import jax

        text = ttcodegen.jax.export(function, *arguments(0)[0], params=params)
        return text, [np.asarray(each) for each in jax.tree_util.tree_leaves(params)]

    return Model(compile, arguments, expected, source)


def _ones(length: int = 16) -> Any:
    import torch

    return torch.ones(1, length, dtype=torch.long)


# Small values of the fields of configurations, by patterns of their names; the first one decides.
_SMALL: tuple[tuple[str, Any], ...] = (
    (r"layer_norm.*|.*_eps|.*dropout.*|.*rate", None),
    (r".*(vocab_size|vocab)|num_hash_buckets_", 128),
    (r"num_feat_extract_layers|num_encoder_blocks", None),
    (r"(num_)?mask_.*|num_labels|num_channels|in_channels|num_mel_bins", None),
    (r"(num_)?(key_value|kv)_heads|num_key_value_heads|num_kv_heads|n_kv_head.*", 2),
    (r"mamba_n_heads|mamba_num_heads|linear_num.*heads", None),
    (r".*(attention_heads|num_heads|n_heads?|heads|n_head)", 4),
    (r"(n_routed_experts|num_local_experts|num_experts|moe_num_experts)", 4),
    (r"(num_experts_per_tok|moe_k|n_group|topk_group|moe_top_k)", 1),
    (r"first_k_dense_replace|decoder_sparse_step", 1),
    (r"(n_layers?|.*num_.*layers|.*_layers|num_.*_blocks|n_layer|depth)", 2),
    (r"(q_lora_rank|kv_lora_rank)", 32),
    (r"(qk_nope_head_dim|v_head_dim|head_dim|d_kv|attention_head_size|d_head)", 16),
    (r"(qk_rope_head_dim|rotary_dim)", 8),
    (r".*(intermediate_size|ffn_dim|d_ff|n_inner|mlp_dim|d_inner|ffn_size|encoder_ffn_dim)", 128),
    (r"(hidden_size|d_model|n_embd|embed_dim|dim|emb_dim|hidden_dim|embedding_size|projection_dim"
     r"|word_embed_proj_dim|encoder_hidden_dim|decoder_hidden_size|d_embed|output_hidden_size"
     r"|attention_hidden_size|hidden_dimension|lru_width|conv_dim_out)", 64),
    (r"image_size|img_size", 32),
    (r"patch_size", 8),
    (r"num_frames|frames", 4),
)  # fmt: skip

_SWIN = {"embed_dim": 48, "image_size": 128, "patch_size": 4, "window_size": 4}
# What the rules do not find: fields of configurations, and arguments.
_FIELDS: Mapping[str, dict[str, Any]] = {
    "BitModel": {"num_groups": 8},
    "DeepseekV2Model": {"num_experts_per_tok": 2, "num_key_value_heads": 4, "qk_rope_head_dim": 16},
    "DeepseekV3Model": {"num_key_value_heads": 4, "qk_rope_head_dim": 16},
    "RTDetrModel": {"decoder_in_channels": [64, 64, 64], "num_queries": 16},
    "DonutSwinModel": _SWIN,
    "SwinModel": _SWIN,
    "Swinv2Model": _SWIN,
    "Swin2SRModel": {"embed_dim": 60},
    "CvtModel": {"embed_dim": [16, 32, 48], "num_heads": [1, 2, 3], "depth": [1, 2, 10]},
    "ReformerModel": {"axial_pos_embds_dim": [16, 48], "axial_pos_shape": [4, 4]},
    "XmodModel": {"default_language": "en_XX"},
    "EfficientNetModel": {"hidden_dim": 1280, "width_coefficient": 1.0, "depth_coefficient": 0.5},
    "EsmModel": {"vocab_size": 128, "pad_token_id": 1, "mask_token_id": 32},
    "GPTNeoModel": {"attention_types": [[["global", "local"], 1]]},
    "LayoutLMv3Model": {"coordinate_size": 12, "shape_size": 8, "input_size": 32},
    "LevitModel": {"patch_size": 16, "image_size": 64},
    "LiltModel": {"hidden_size": 96},
    "Mamba2Model": {"num_heads": 8, "head_dim": 16},
    "MinistralModel": {"head_dim": 16},
    "MobileViTV2Model": {"image_size": 64},
    "NemotronModel": {"num_key_value_heads": 2, "head_dim": 16},
}
_ARGUMENTS: Mapping[str, dict[str, Any]] = {
    "LongT5Model": {"attention_mask": _ones},
    "LEDModel": {"global_attention_mask": _ones},
}


def small(config_class: Any, name: str = "") -> dict[str, Any]:
    """Fields of a configuration that make its model small."""
    fields = config_class().to_dict()
    parts = getattr(config_class, "sub_configs", {})
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if key in parts and isinstance(value, dict) and hasattr(parts[key], "to_dict"):
            found[key] = parts[key](**small(parts[key]))
        elif key.endswith("token_id") and isinstance(value, int) and value >= 100:
            found[key] = 1 if "pad" in key else 2
        elif isinstance(value, bool):
            continue
        elif isinstance(value, int):
            limit = next((v for rule, v in _SMALL if re.fullmatch(rule, key)), None)
            if limit is not None and value > limit:
                found[key] = limit
        elif key in ("depths", "layer_depths", "depth", "num_blocks") and isinstance(value, list):
            found[key] = [1] * len(value)
        elif re.search("hidden_sizes|embed_dims|widths|dims$", key) and isinstance(value, list):
            if all(isinstance(each, int) and each > 16 for each in value):
                found[key] = [max(16, each // 4) for each in value]
    return found | _FIELDS.get(name, {})


def _transformers(name: str) -> tuple[Any, Any]:
    import torch
    import transformers

    kind = getattr(transformers, name)
    config = kind.config_class(**small(kind.config_class, name))
    for each in (config, *(getattr(config, part, None) for part in config.sub_configs)):
        if hasattr(each, "use_cache"):
            each.use_cache = False
    module = kind(config)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    signature = inspect.signature(module.forward).parameters
    vision = getattr(config, "vision_config", config)
    text = getattr(config, "text_config", config)

    def tokens(length: int = 16) -> Any:
        return torch.randint(3, getattr(text, "vocab_size", 128) - 1, (1, length))

    def pixels() -> Any:
        size = getattr(vision, "image_size", 32) or 32
        sizes = list(size) if isinstance(size, list | tuple) else [size, size]
        channels = getattr(vision, "num_channels", None) or 3
        frames = getattr(config, "num_frames", None)
        shape = [1, frames, channels, *sizes] if frames else [1, channels, *sizes]
        return torch.rand(shape)

    def features() -> Any:
        bins = getattr(config, "num_mel_bins", None) or getattr(
            config, "feature_projection_input_dim", 80
        )
        if "Whisper" in name:
            return torch.rand(1, bins, 2 * config.max_source_positions)
        return torch.rand(1, 32, bins)

    def values() -> Any:
        if name == "ASTModel":
            return torch.rand(1, config.max_length, config.num_mel_bins)
        return torch.randn(1, 4000)

    makers = {
        "input_ids": tokens,
        "decoder_input_ids": lambda: tokens(8),
        "pixel_values": pixels,
        "input_features": features,
        "input_values": values,
        "bool_masked_pos": lambda: None,
    }
    wanted = [each for each in makers if each in signature and each != "bool_masked_pos"]
    if "pixel_values" in wanted and "input_ids" not in wanted:
        wanted = ["pixel_values"]
    if name == "ImageGPTModel":
        wanted = ["input_ids"]

    def draw() -> tuple[tuple[Any, ...], dict[str, Any]]:
        made = {each: makers[each]() for each in wanted}
        return (), made | {k: v() for k, v in _ARGUMENTS.get(name, {}).items()}

    return module, draw


def _images(module: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    import torch

    return module, lambda: ((torch.rand(shape),), {})


def _timm(name: str) -> tuple[Any, Any]:
    import timm

    options: dict[str, Any] = {"num_classes": 10}
    for size, given in ((64, {"img_size": 64}), (64, {}), (224, {})):
        size = 96 if "inception_v" in name or "xception" in name else size
        try:
            module = timm.create_model(name, **options, **given).eval()
            import torch

            with torch.no_grad():
                module(torch.rand(1, 3, size, size))
        except Exception:
            if size == 224:
                raise
            continue
        return _images(module, (1, 3, size, size))
    raise AssertionError


def _torchvision(name: str) -> tuple[Any, Any]:
    import torchvision

    group, _, kind = name.rpartition(".")
    models = getattr(torchvision.models, group) if group else torchvision.models
    if group == "optical_flow":
        import torch

        module = getattr(models, kind)(weights=None)
        return module, lambda: ((torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128)),
                                {"num_flow_updates": 2})  # fmt: skip
    options: dict[str, Any] = {"weights": None}
    if group == "segmentation":
        options |= {"weights_backbone": None, "num_classes": 5}
    else:
        options |= {"num_classes": 10}
    if kind in ("googlenet", "inception_v3"):
        options |= {"init_weights": False}
    size = {"vit_b_32": 224, "maxvit_t": 224, "inception_v3": 96}.get(kind, 64)
    shape = (1, 3, size, size)
    if group == "video":
        shape = {"mvit_v1_b": (1, 3, 16, 224, 224), "s3d": (1, 3, 16, 64, 64)}.get(
            kind, (1, 3, 4, 64, 64)
        )
    return _images(getattr(models, kind)(**options), shape)


_BLOCKS = {
    "block_out_channels": (32, 64),
    "layers_per_block": 1,
    "norm_num_groups": 8,
}
_CROSS = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
}
_DIT = {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 4, "sample_size": 8}
_CODER = {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}
# Configurations of diffusers, and the shapes of arguments.
_DIFFUSERS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "UNet1DModel": (
        {"block_out_channels": (16, 32), "layers_per_block": 1, "sample_size": 32,
         "down_block_types": ("DownBlock1D", "AttnDownBlock1D"), "norm_num_groups": 8,
         "up_block_types": ("AttnUpBlock1D", "UpBlock1D"), "extra_in_channels": 16},
        {"sample": (1, 2, 32), "timestep": ()}),
    "UNet2DModel": (
        _BLOCKS | {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "sample_size": 16,
                   "up_block_types": ("AttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 8},
        {"sample": (1, 3, 16, 16), "timestep": ()}),
    "UNet2DConditionModel": (
        _BLOCKS | _CROSS | {"sample_size": 16},
        {"sample": (1, 4, 16, 16), "timestep": (), "encoder_hidden_states": (1, 8, 32)}),
    "UNet3DConditionModel": (
        _BLOCKS | {"down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"), "sample_size": 16,
                   "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
                   "cross_attention_dim": 32, "attention_head_dim": 8},
        {"sample": (1, 4, 2, 16, 16), "timestep": (), "encoder_hidden_states": (1, 8, 32)}),
    "UNetMotionModel": (
        _BLOCKS | {"down_block_types": ("CrossAttnDownBlockMotion", "DownBlockMotion"),
                   "up_block_types": ("UpBlockMotion", "CrossAttnUpBlockMotion"),
                   "cross_attention_dim": 32, "num_attention_heads": 2, "sample_size": 16,
                   "motion_num_attention_heads": 2},
        {"sample": (1, 4, 2, 16, 16), "timestep": (), "encoder_hidden_states": (1, 8, 32)}),
    "AutoencoderKL": (_BLOCKS | _CODER, {"sample": (1, 3, 32, 32)}),
    "AutoencoderTiny": (
        {"encoder_block_out_channels": (16, 16), "decoder_block_out_channels": (16, 16),
         "num_encoder_blocks": (1, 2), "num_decoder_blocks": (2, 1)}, {"sample": (1, 3, 32, 32)}),
    "AsymmetricAutoencoderKL": (
        {"down_block_types": ("DownEncoderBlock2D",) * 2, "norm_num_groups": 8,
         "down_block_out_channels": (32, 64), "up_block_types": ("UpDecoderBlock2D",) * 2,
         "up_block_out_channels": (32, 64), "layers_per_down_block": 1, "layers_per_up_block": 1},
        {"sample": (1, 3, 32, 32)}),
    "VQModel": (_BLOCKS | _CODER | {"num_vq_embeddings": 32}, {"sample": (1, 3, 32, 32)}),
    "AutoencoderOobleck": (
        {"encoder_hidden_size": 16, "downsampling_ratios": [2, 4], "decoder_channels": 16,
         "decoder_input_channels": 8, "channel_multiples": [1, 2]}, {"sample": (1, 2, 64)}),
    "DiTTransformer2DModel": (
        _DIT | {"in_channels": 4, "out_channels": 8, "norm_num_groups": 4,
                "num_embeds_ada_norm": 16},
        {"hidden_states": (1, 4, 8, 8), "timestep": (1,), "class_labels": (1,)}),
    "PixArtTransformer2DModel": (
        _DIT | {"cross_attention_dim": 64, "caption_channels": 32},
        {"hidden_states": (1, 4, 8, 8), "encoder_hidden_states": (1, 8, 32), "timestep": (1,)}),
    "SD3Transformer2DModel": (
        _DIT | {"caption_projection_dim": 64, "joint_attention_dim": 32, "in_channels": 4,
                "out_channels": 4, "pooled_projection_dim": 32, "pos_embed_max_size": 8},
        {"hidden_states": (1, 4, 8, 8), "encoder_hidden_states": (1, 8, 32),
         "pooled_projections": (1, 32), "timestep": (1,)}),
    "FluxTransformer2DModel": (
        {"in_channels": 4, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16,
         "num_attention_heads": 2, "joint_attention_dim": 32, "pooled_projection_dim": 32,
         "axes_dims_rope": (4, 4, 8)},
        {"hidden_states": (1, 16, 4), "encoder_hidden_states": (1, 8, 32),
         "pooled_projections": (1, 32), "timestep": (1,), "img_ids": (16, 3), "txt_ids": (8, 3)}),
    "SanaTransformer2DModel": (
        _DIT | {"in_channels": 4, "out_channels": 4, "num_cross_attention_heads": 4,
                "cross_attention_head_dim": 16, "cross_attention_dim": 64, "caption_channels": 32},
        {"hidden_states": (1, 4, 8, 8), "encoder_hidden_states": (1, 8, 32), "timestep": (1,)}),
    "HunyuanDiT2DModel": (
        {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 4, "hidden_size": 64,
         "sample_size": 8, "cross_attention_dim": 32, "cross_attention_dim_t5": 32,
         "pooled_projection_dim": 16, "text_len": 4, "text_len_t5": 4, "in_channels": 4},
        {"hidden_states": (1, 4, 8, 8), "timestep": (1,), "encoder_hidden_states": (1, 4, 32),
         "text_embedding_mask": (1, 4), "encoder_hidden_states_t5": (1, 4, 32),
         "text_embedding_mask_t5": (1, 4), "image_meta_size": (1, 6), "style": (1,),
         "image_rotary_emb": ((16, 16), (16, 16))}),
    "Transformer2DModel": (
        _DIT | {"in_channels": 32, "norm_num_groups": 8, "cross_attention_dim": 32},
        {"hidden_states": (1, 32, 8, 8), "encoder_hidden_states": (1, 8, 32)}),
    "PriorTransformer": (
        {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 4, "embedding_dim": 32,
         "num_embeddings": 7},
        {"hidden_states": (1, 32), "timestep": (), "proj_embedding": (1, 32),
         "encoder_hidden_states": (1, 7, 32)}),
    "UVit2DModel": (
        {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 64,
         "cond_embed_dim": 32, "encoder_hidden_size": 32, "micro_cond_encode_dim": 8,
         "micro_cond_embed_dim": 40, "block_out_channels": 64, "codebook_size": 60,
         "block_num_heads": 4, "in_channels": 64, "intermediate_size": 128, "sample_size": 8},
        {"input_ids": (1, 8, 8), "encoder_hidden_states": (1, 8, 32),
         "pooled_text_emb": (1, 32), "micro_conds": (1, 5)}),
    "ControlNetModel": (
        _BLOCKS | {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
                   "cross_attention_dim": 32, "attention_head_dim": 8,
                   "conditioning_embedding_out_channels": (8, 16)},
        {"sample": (1, 4, 16, 16), "timestep": (), "encoder_hidden_states": (1, 8, 32),
         "controlnet_cond": (1, 3, 32, 32)}),
    "AuraFlowTransformer2DModel": (
        {"sample_size": 8, "num_mmdit_layers": 1, "num_single_dit_layers": 1,
         "attention_head_dim": 16, "num_attention_heads": 4, "joint_attention_dim": 32,
         "caption_projection_dim": 64, "pos_embed_max_size": 16},
        {"hidden_states": (1, 4, 8, 8), "encoder_hidden_states": (1, 8, 32), "timestep": (1,)}),
}  # fmt: skip
_WHOLE = {"timestep": 1000, "class_labels": 16, "input_ids": 60, "style": 1}


def _diffusers(name: str) -> tuple[Any, Any]:
    import diffusers
    import torch

    fields, shapes = _DIFFUSERS[name]

    def drawn(key: str, shape: Any) -> Any:
        if shape and isinstance(shape[0], tuple):
            return tuple(drawn(key, each) for each in shape)
        if key in _WHOLE:
            return torch.randint(0, _WHOLE[key], shape)
        return torch.ones(shape) if "mask" in key else torch.randn(shape)

    def draw() -> tuple[tuple[Any, ...], dict[str, Any]]:
        named = {key: drawn(key, shape) for key, shape in shapes.items()}
        if "UVit" not in name and "Auto" not in name and "VQ" not in name:
            named["return_dict"] = False
        return (), named

    return getattr(diffusers, name)(**fields), draw


def _torch(name: str) -> tuple[Any, Any]:
    import torch
    from torch import nn

    rnn = {"input_size": 32, "hidden_size": 64, "batch_first": True}
    layer = {"d_model": 64, "nhead": 4, "dim_feedforward": 128, "batch_first": True}
    a, b = (lambda: torch.randn(1, 16, 64)), (lambda: torch.randn(1, 8, 64))

    def sequence() -> Any:
        return (torch.randn(2, 12, 32),), {}

    if name in ("LSTM", "GRU", "RNN"):
        return getattr(nn, name)(**rnn), sequence
    if name == "BiLSTM":
        return nn.LSTM(**rnn, bidirectional=True), sequence
    if name == "TwoLayerGRU":
        return nn.GRU(**rnn, num_layers=2), sequence
    if name.endswith("Cell"):
        return getattr(nn, name)(32, 64), lambda: ((torch.randn(2, 32),), {})
    if name == "Transformer":
        return nn.Transformer(num_encoder_layers=1, num_decoder_layers=1, **layer), lambda: (
            (a(), b()),
            {},
        )
    if name == "TransformerEncoder":
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), 2), lambda: ((a(),), {})
    if name == "TransformerDecoder":
        return nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), 2), lambda: (
            (b(), a()),
            {},
        )
    if name == "MultiheadAttention":
        return nn.MultiheadAttention(64, 4, batch_first=True), lambda: ((a(), b(), b()), {})
    if name == "Embedding":
        return nn.EmbeddingBag(128, 64), lambda: ((torch.randint(0, 128, (4, 8)),), {})
    layers = (nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(*layers), lambda: ((torch.randn(4, 32),), {})
