"""run_clm.py in short: texts joined and cut into blocks, GPT-2 from a config, gradients accumulated, two data workers."""
import tempfile
from itertools import chain

from reviews import make_reviews, make_tokenizer
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

BLOCK = 32


def group_texts(examples):
    joined = {key: list(chain(*examples[key])) for key in examples}
    total = (len(joined["input_ids"]) // BLOCK) * BLOCK
    result = {key: [row[i : i + BLOCK] for i in range(0, total, BLOCK)] for key, row in joined.items()}
    result["labels"] = result["input_ids"].copy()
    return result


def make_trainer():
    set_seed(3)
    tokenizer = make_tokenizer()
    raw = make_reviews(train=400, test=80)
    tokenized = raw.map(lambda rows: tokenizer(rows["text"]), batched=True, remove_columns=["text", "label"])
    blocks = tokenized.map(group_texts, batched=True)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=BLOCK, bos_token_id=2, eos_token_id=3)
    arguments = TrainingArguments(
        tempfile.mkdtemp(), max_steps=16, per_device_train_batch_size=8, gradient_accumulation_steps=2, use_cpu=True,
        eval_strategy="steps", eval_steps=8, save_strategy="no", report_to="none", dataloader_num_workers=2,
    )
    return Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=blocks["train"],
        eval_dataset=blocks["test"],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )


if __name__ == "__main__":
    make_trainer().train()
