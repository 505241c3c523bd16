import tempfile

import numpy as np
import torch
from reviews import make_reviews, make_tokenizer
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.full((len(rows), longest), rows[0]["input_ids"][-1])
    for number, row in enumerate(rows):
        ids[number, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
    return {"input_ids": ids, "labels": torch.tensor([row["label"] for row in rows])}


def make_trainer():
    tokenizer = make_tokenizer()
    tokenized = make_reviews().map(lambda rows: tokenizer(rows["text"], truncation=True, max_length=64), batched=True)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64, num_labels=3,
    )
    arguments = TrainingArguments(
        tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=16, per_device_eval_batch_size=16,
        eval_strategy="epoch", save_strategy="epoch", logging_steps=5, report_to="none", use_cpu=True, learning_rate=1e-3,
    )
    return Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=tokenized["train"],
        eval_dataset=tokenized["test"],
        processing_class=tokenizer,
        data_collator=collate,
        compute_metrics=compute_metrics,
    )


if __name__ == "__main__":
    trainer = make_trainer()
    trainer.train()
    print(trainer.evaluate())
