"""Models of Hugging Face Transformers, timm and torchvision, built from their configurations, under a design."""

import pytest

torch = pytest.importorskip("torch")
import softnum.torch as st  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import inputs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
IDS = torch.arange(24).view(2, 12) * 5 % 64
SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64,
}  # fmt: skip
GPT2 = {
    "vocab_size": 64, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "resid_pdrop": 0, "embd_pdrop": 0,
    "attn_pdrop": 0, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
#: name -> class, configuration, options, and the products of a forward pass
LANGUAGE = {
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", GPT2, {}, 13),
    "GPT-2, attention written out": ("GPT2LMHeadModel", "GPT2Config", GPT2, {"attn_implementation": "eager"}, 13),
    "Llama, grouped queries": ("LlamaForCausalLM", "LlamaConfig", SIZES | {"num_key_value_heads": 2}, {}, 19),
    "Mixtral": (
        "MixtralForCausalLM", "MixtralConfig",
        SIZES | {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}, {}, None,
    ),
    "BERT": (
        "BertForMaskedLM", "BertConfig", SIZES | {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}, {}, 18,
    ),
    "T5": (
        "T5ForConditionalGeneration", "T5Config",
        {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "dropout_rate": 0,
         "decoder_start_token_id": 0}, {}, 45,
    ),
}  # fmt: skip
IMAGES = {
    "torchvision ResNet-18": ("torchvision", "resnet18", {}, 21),
    "torchvision ResNet-50": ("torchvision", "resnet50", {}, 54),
    "torchvision ViT": (
        "torchvision", "VisionTransformer",
        {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 64}, 14,
    ),
    "timm ViT": ("timm", "vit_tiny_patch16_224", {"img_size": 32, "depth": 2}, 14),
    "timm ResNet-18": ("timm", "resnet18", {}, 21),
}  # fmt: skip


def language(name):
    transformers = pytest.importorskip("transformers")
    kind, configuration, sizes, options, products = LANGUAGE[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)._from_config(getattr(transformers, configuration)(**sizes), **options)
    return model, lambda model: model(input_ids=IDS, labels=IDS).loss, products


def image(name):
    package, kind, options, products = IMAGES[name]
    library = pytest.importorskip(package)
    torch.manual_seed(0)
    if package == "timm":
        model = library.create_model(kind, num_classes=10, **options)
    else:
        model = getattr(library.models, kind)(num_classes=10, **options)
    x, labels = inputs(4, 3, 32, 32), torch.tensor([1, 3, 5, 7])
    return model, lambda model: torch.nn.functional.cross_entropy(model(x), labels), products


def counted(model):
    """The products of a converted model from now on, by function."""
    mode, counts = model.softnum_mode, {}
    apply = mode.apply

    def counting(name, *arguments, **options):
        counts[name] = counts.get(name, 0) + 1
        return apply(name, *arguments, **options)

    mode.apply = counting
    return counts


#: design, what computes all but products, and how far the loss may be from PyTorch's
DESIGNS = (
    ("a-float32", "torch", 1e-4), ("i-mxfp8", "torch", 0.2), ("a-float32", "exact", 1e-4),
    ("c-wang-fp8", "exact", 0.2), ("te-float8-current-scaling", "exact", 0.4),
)  # fmt: skip


LARGE = "torchvision ResNet-50"


@cases("name", [name for name in (*LANGUAGE, *IMAGES) if name != LARGE])
def test_a_step(name):
    check_step(name)


@pytest.mark.slow
def test_a_step_of_a_large_model():
    check_step(LARGE)


def check_step(name):
    """In binary32 the loss is PyTorch's; elsewhere near it, and every parameter has a gradient that differs."""
    make = language if name in LANGUAGE else image
    plain, loss, products = make(name)
    expected = loss(plain)
    expected.backward()
    for design, elementwise, tolerance in DESIGNS:
        model = make(name)[0]
        last = [path for path, module in model.named_modules() if isinstance(module, torch.nn.Linear)][-1]
        known = {last: "fc"} if design[0] in "ct" else {}
        st.convert(model, design, elementwise=elementwise, known_as=known, quiet=True)
        optimizer, scaler = st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.01), model), st.GradScaler(model)
        counts = counted(model)
        found = loss(model)
        scaler.scale(found).backward()
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
        if products is not None:
            assert sum(counts.get(function, 0) for function in ("linear", "conv2d", "matmul")) == products
        for (path, parameter), twin in zip(model.named_parameters(), plain.parameters(), strict=True):
            assert (parameter.grad is None) == (twin.grad is None), path
            if design != "a-float32" and twin.grad is not None and twin.grad.abs().max() > 1e-6:
                assert not torch.equal(parameter.grad, twin.grad), path
        before = [parameter.clone() for parameter in model.parameters()]
        scaler.step(optimizer)
        scaler.update()
        assert not all(map(torch.equal, before, model.parameters()))
