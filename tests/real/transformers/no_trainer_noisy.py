import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from reviews import make_reviews, make_tokenizer
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, DataCollatorWithPadding, get_scheduler


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(4)
    tokenizer = make_tokenizer()
    tokenized = make_reviews().map(
        lambda rows: {**tokenizer(rows["text"]), "labels": rows["label"]}, batched=True, remove_columns=["text", "label"]
    )
    collator = DataCollatorWithPadding(tokenizer)
    train_loader = DataLoader(tokenized["train"], shuffle=True, collate_fn=collator, batch_size=8)
    eval_loader = DataLoader(tokenized["test"], collate_fn=collator, batch_size=8)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=3
    )
    model = BertForSequenceClassification(config)
    no_decay = ["bias", "LayerNorm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=5e-4)
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=5, num_training_steps=45)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    for epoch in range(3):
        model.train()
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        correct = count = 0
        for batch in eval_loader:
            with torch.no_grad():
                outputs = model(**batch)
            predictions, references = accelerator.gather_for_metrics((outputs.logits.argmax(dim=-1), batch["labels"]))
            correct += (predictions == references).sum().item()
            count += len(references)
        accelerator.print(f"epoch {epoch}: {correct / count:.3f}")


if __name__ == "__main__":
    main()
