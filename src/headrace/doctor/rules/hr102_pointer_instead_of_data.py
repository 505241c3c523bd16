"""HR102 pointer-instead-of-data: the file holds the address of the data, not the data."""

from __future__ import annotations

from headrace.doctor.evidence import SampleReads
from headrace.doctor.made_up import failed, image, label, ok, opened, reads
from headrace.doctor.questions.file_heads import pointer_in
from headrace.doctor.questions.samples import grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, share, verb

LFS_HEAD = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614"
DVC_HEAD = b"outs:\n- md5: a304afb96060aad90176268345e10355\n  size: 14445097\n"


class PointerInsteadOfData(Rule):
    """HR102."""

    code = "HR102"
    name = "pointer-instead-of-data"
    summary = "Files that hold a pointer of git-lfs, DVC or git-annex in the place of their content."
    rationale = """
        A clone without the large files leaves a text of about 130 bytes under each file's name. Decoders then say
        "cannot identify image file", which reads like damage, and people fetch or repair the wrong thing. If the data
        set reads text, nothing fails at all: the pointer is what the network learns.

        It is no fault to open a `.dvc` file on purpose, say to log the version of the data: such a sample comes out,
        and is left alone.
        """
    experiment = """
        The first 64 bytes of each file that is opened while a chosen sample is prepared are compared with the first
        line of the known pointer formats. Nothing is changed.
        """
    needs = (SampleReads,)
    fix = Fix(
        text="Fetch the content behind the pointers.",
        safety="writes the data files; the samples that were readable stay as they are",
        snippet="$ git lfs pull",
    )
    references = ("kits19#5", "coursera-deep-learning-specialization#2", "rainy-image-dataset#2")

    def judge(self, seen: SampleReads) -> list[Finding]:
        """One finding for each tool."""
        pointers = [(pointer, read) for read in seen.reads if (pointer := pointer_in(read)) is not None]
        findings = []
        for tool, members in grouped((pointer.tool, (pointer, read)) for pointer, read in pointers).items():
            number, (first, first_read) = len(members), members[0]
            ids = tuple(read.sample_id for _, read in members)
            are = verb(number, f"is a {tool} pointer", f"are {tool} pointers")
            head = next(file.head for file in first_read.files if file.path == first.path)
            findings.append(
                Finding(
                    message=f"{share(number, seen)} {are}, not data: {listing(ids, limit=3)}",
                    stage="read",
                    sample_ids=ids,
                    where=first.path,
                    evidence={"tool": tool, "first_line": head.decode(errors="replace").splitlines()[0]},
                    fix=Fix(text=self.fix.text, safety=self.fix.safety, snippet=f"$ {first.command}"),
                )
            )
        return findings

    sick = (
        Example(
            title="A clone without its large files",
            evidence=(
                reads(
                    ok(image(3, 16, 16)),
                    failed(
                        "UnidentifiedImageError",
                        "cannot identify image file",
                        files=(opened("data/7.png", size_bytes=130, head=LFS_HEAD),),
                        sample_id="7.png",
                    ),
                    num_samples=1_797,
                ),
            ),
            message="1 of 2 examined samples is a git-lfs pointer, not data: 7.png",
            sample_ids=("7.png",),
        ),
        Example(
            title="A text data set that delivers pointers without any error",
            evidence=(
                reads(
                    ok(label(0), files=(opened("a.txt", size_bytes=131, head=LFS_HEAD),)),
                    ok(label(1), files=(opened("b.txt", size_bytes=131, head=LFS_HEAD),)),
                ),
            ),
            message="all 2 samples are git-lfs pointers, not data: 0, 1",
            sample_ids=(0, 1),
        ),
        Example(
            title="A DVC file opened in the place of the array that it stands for",
            evidence=(
                reads(
                    failed(
                        "ValueError",
                        "cannot load pickled data",
                        files=(opened("x.npy.dvc", size_bytes=92, head=DVC_HEAD),),
                    ),
                    ok(image(3, 16, 16)),
                ),
            ),
            message="1 of 2 samples is a DVC pointer, not data: 0",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(
            title="Real images beside a .dvc file that is read for the version of the data",
            evidence=(
                reads(ok(image(3, 16, 16), files=(opened("a.jpg"), opened("data.dvc", size_bytes=92, head=DVC_HEAD)))),
            ),
        ),
        Example(
            title="A long text that quotes the pointer format",
            evidence=(reads(ok(label(0), files=(opened("spec.md", size_bytes=20_480, head=LFS_HEAD),))),),
        ),
        Example(
            title="A damaged image: that is HR101",
            evidence=(reads(failed("OSError", "broken data stream", files=(opened("a.jpg"),)), ok(image(3, 16, 16))),),
        ),
    )
