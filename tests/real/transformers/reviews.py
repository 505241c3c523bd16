"""Reviews in memory and a tokenizer made from their words: nothing is downloaded."""
import random

from datasets import Dataset, DatasetDict
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

GOOD = "great lovely moving brilliant funny charming".split()
BAD = "dull awful boring weak clumsy flat".split()
OTHER = "the film story acting music was and but quite very a rather of in scene plot with cast".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_reviews(train=240, test=60):
    rng = random.Random(5)

    def rows(count):
        labels = [rng.randrange(3) for _ in range(count)]
        sides = [GOOD, BAD, GOOD + BAD]
        texts = [" ".join(rng.choice(sides[y]) if rng.random() < 0.3 else rng.choice(OTHER) for _ in range(rng.randint(5, 40))) for y in labels]
        return Dataset.from_dict({"text": texts, "label": labels})

    return DatasetDict({"train": rows(train), "test": rows(test)})


def make_tokenizer():
    words = SPECIAL + sorted(set(GOOD + BAD + OTHER))
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]"
    )
