"""run_mlm.py in short: the collator masks words anew in each epoch."""
import tempfile

from reviews import make_reviews, make_tokenizer
from transformers import BertConfig, BertForMaskedLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments


def make_trainer():
    tokenizer = make_tokenizer()
    raw = make_reviews()
    tokenized = raw.map(
        lambda rows: tokenizer(rows["text"], return_special_tokens_mask=True), batched=True, remove_columns=["text", "label"]
    )
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    return Trainer(
        model=BertForMaskedLM(config),
        args=TrainingArguments(tempfile.mkdtemp(), report_to="none", use_cpu=True, dataloader_num_workers=1),
        train_dataset=tokenized["train"],
        eval_dataset=tokenized["test"],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15),
    )
