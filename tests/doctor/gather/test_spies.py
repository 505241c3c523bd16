"""What spies see of each library while a sample is prepared: real files, real decoders, a real child."""

import importlib.util

import numpy as np
import pytest
from PIL import Image

from headrace.doctor.experiments.decoding import Again, LookAgain
from headrace.doctor.probes.reads import ReadSamples, read_samples

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)


def read_all(lab, size):
    prepared, ending = read_samples(lab, ReadSamples(indices=range(size), seed=0), lambda text: None)
    assert ending.outcome == "done"
    return [one.read for one in prepared]


def look(lab, size):
    records = []
    ending = lab.run(LookAgain(indices=tuple(range(size)), seed=0, wall_s=60.0), records.append)
    assert (ending.outcome, ending.cause) == ("done", "")
    return [record for record in records if isinstance(record, Again)]


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


def target(lines, size=1, imports=""):
    body = "\n".join(f"        {line}" for line in lines.strip().splitlines())
    return f"""
{imports}
class Rows(Base):
    size = {size}
    def __getitem__(self, index):
{body}

def make():
    return Rows()
"""


@pytest.fixture
def folder(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "photo.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PIXELS).save(tmp_path / "turned.jpg", exif=exif)
    Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 200).save(tmp_path / "deep.png")
    np.save(tmp_path / "mask.npy", PIXELS[..., 0] // 64)
    np.savez(tmp_path / "many.npz", x=PIXELS)
    (tmp_path / "page.jpg").write_text("<html>")
    return tmp_path


@pytest.mark.slow
def test_steps_of_pillow_are_seen_in_their_order_and_at_their_picture(open_lab, folder):
    code = target(
        f"""
first = Image.open("{folder}/photo.png").convert("L").resize((30, 20)).rotate(90, expand=True)
second = ImageOps.exif_transpose(Image.open("{folder}/turned.jpg")).crop((0, 0, 20, 30))
return np.asarray(first), np.asarray(second)
""",
        imports="from PIL import Image, ImageOps",
    )
    (again,) = look(open_lab(code), 1)
    photo, photograph = again.decoding.pictures
    assert (photo.format, photo.mode, photo.orientation) == ("PNG", "RGB", 1)
    # A quarter turn is a transposition to Pillow; both steps are told.
    assert [(step.name, step.detail) for step in photo.steps if step.name != "transpose"] == [
        ("load", ""),
        ("convert", "RGB -> L"),
        ("resize", "BICUBIC"),
        ("rotate", "90 NEAREST"),
    ]
    assert photograph.orientation == 6
    names = [step.name for step in photograph.steps]
    assert {"load", "exif_transpose", "crop"} <= set(names)
    assert photograph.steps[-1].after == (20, 30)


@pytest.mark.slow
def test_a_conversion_from_16_bits_tells_its_highest_value(open_lab, folder):
    code = target(f'return np.asarray(Image.open("{folder}/deep.png").convert("L"))', imports="from PIL import Image")
    (again,) = look(open_lab(code), 1)
    (deep,) = again.decoding.pictures
    (step,) = [step for step in deep.steps if step.name == "convert"]
    assert step.highest == deep.maximum == 200 * int(PIXELS[..., 0].max())
    assert deep.above_8_bit == pytest.approx((PIXELS[..., 0].astype(int) * 200 > 255).mean())
    assert deep.like_clipped == pytest.approx(1.0)


@pytest.mark.slow
def test_an_array_file_and_members_of_an_archive(open_lab, folder):
    code = target(f"""
mask = np.load("{folder}/mask.npy")
with np.load("{folder}/many.npz") as archive:
    x = archive["x"]
return x, mask.astype(np.int64)
""")
    lab = open_lab(code)
    (read,) = read_all(lab, 1)
    assert [file.path for file in read.files] == [f"{folder}/mask.npy", f"{folder}/many.npz"]
    (again,) = look(lab, 1)
    (mask,) = again.decoding.pictures
    assert (mask.reader, mask.format, mask.values, mask.field) == ("NumPy", "NPY", (0, 1, 2, 3), "1")


REFUSALS = {
    "Pillow": ("from PIL import Image", 'Image.open("FOLDER/page.jpg")', "UnidentifiedImageError"),
    "NumPy": ("", 'np.load("FOLDER/page.jpg")', "ValueError"),
    "torch": ("import torch", 'torch.load("FOLDER/page.jpg")', "UnpicklingError"),
    "missing": ("", 'np.load("FOLDER/nothing.npy")', "FileNotFoundError"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_told_of_a_sample_that_came_out(open_lab, folder, name):
    imports, call, error = REFUSALS[name]
    lines = f"try:\n    {call}\nexcept Exception:\n    pass\nreturn np.zeros(3)"
    (read,) = read_all(open_lab(target(lines.replace("FOLDER", str(folder)), imports=imports)), 1)
    assert read.outcome == "ok"
    assert [(refusal.path, refusal.error_type) for refusal in read.refusals] == [
        (f"{folder}/{'nothing.npy' if name == 'missing' else 'page.jpg'}", error)
    ]


@pytest.mark.slow
def test_a_second_decoder_takes_a_refusal_back(open_lab, folder):
    lines = f"""
try:
    return np.load("{folder}/photo.png")
except ValueError:
    return np.asarray(Image.open("{folder}/photo.png"))
"""
    lab = open_lab(target(lines, imports="from PIL import Image"))
    (read,) = read_all(lab, 1)
    assert read.refusals == ()
    (again,) = look(lab, 1)
    assert [one.recovered for one in again.swallowed] == [True]


@pytest.mark.slow
@needs("cv2")
def test_opencv_taken_by_name_is_seen(open_lab, folder):
    code = target(
        f"""
missing = imread("{folder}/page.jpg")
turned = imread("{folder}/turned.jpg")
small = cv2.resize(turned, (20, 30), interpolation=cv2.INTER_NEAREST)
raw = cv2.imdecode(np.fromfile("{folder}/deep.png", np.uint8), cv2.IMREAD_UNCHANGED)
return small, raw.astype(np.int32), missing is None
""",
        imports="import cv2\nfrom cv2 import imread",
    )
    lab = open_lab(code)
    (read,) = read_all(lab, 1)
    assert [(one.path, one.error_type, one.error_message) for one in read.refusals] == [
        (f"{folder}/page.jpg", "", "cv2.imread returned None")
    ]
    assert [(image.path, image.mode, image.size) for image in read.images] == [
        (f"{folder}/turned.jpg", "RGB", (40, 60)),
        (f"{folder}/deep.png", "I;16", (60, 40)),
    ]
    (again,) = look(lab, 1)
    turned, deep = again.decoding.pictures
    assert [(step.name, step.detail) for step in turned.steps] == [
        ("load", ""),
        ("exif_transpose", "cv2.imread"),
        ("resize", "INTER_NEAREST"),
    ]
    assert (turned.orientation, turned.size) == (6, (60, 40))
    assert (deep.mode, deep.path) == ("I;16", f"{folder}/deep.png")


@pytest.mark.slow
@needs("h5py")
def test_a_file_that_is_opened_in_c_is_named_also_when_it_was_opened_before(open_lab, tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(12).reshape(3, 4)
    code = target(
        """
if not hasattr(self, "file"):
    self.file = h5py.File(PATH)
return self.file["x"][index]
""".replace("PATH", repr(str(tmp_path / "x.h5"))),
        size=3,
        imports="import h5py",
    )
    reads = read_all(open_lab(code), 3)
    assert [[file.path for file in read.files] for read in reads] == [[f"{tmp_path}/x.h5"]] * 3


@pytest.mark.slow
@needs("soundfile")
def test_sound_files_are_named_and_refused(open_lab, tmp_path):
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    (tmp_path / "b.wav").write_bytes(b"RIFF nothing")
    lines = f"""
try:
    return sf.read("{tmp_path}/" + "ab"[index] + ".wav")[0]
except Exception:
    return np.zeros(100)
"""
    first, second = read_all(open_lab(target(lines, size=2, imports="import soundfile as sf")), 2)
    assert (first.files[0].path, first.refusals) == (f"{tmp_path}/a.wav", ())
    assert [refusal.path for refusal in second.refusals] == [f"{tmp_path}/b.wav"]


@pytest.mark.slow
@needs("imageio")
@needs("tifffile")
@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import imageio.v3 as iio", "iio.imread(PATH)"),
        ("import imageio", "imageio.v2.imread(PATH)"),
        ("from tifffile import imread", "imread(PATH)"),
    ],
)
def test_other_readers_of_images_are_seen(open_lab, tmp_path, imports, call):
    path = tmp_path / "deep.tif"
    Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 200).save(path)
    code = target(f"return {call.replace('PATH', repr(str(path)))}.astype(np.uint8)", imports=imports)
    lab = open_lab(code)
    (read,) = read_all(lab, 1)
    assert [image.path for image in read.images] == [str(path)]
    (again,) = look(lab, 1)
    (deep,) = again.decoding.pictures
    assert (deep.mode, deep.like_wrapped) == ("I;16", pytest.approx(1.0))


@pytest.mark.slow
def test_no_library_is_imported_that_the_user_does_not_import(open_lab):
    code = target(
        "return sorted({'PIL', 'cv2', 'h5py', 'soundfile', 'tifffile', 'imageio', 'torchvision'} & set(sys.modules))"
    )
    (read,) = read_all(open_lab(code), 1)
    assert [(view.field, view.kind) for view in read.fields] == [("sample", "sequence")]
    assert read.outcome == "ok"


@pytest.mark.slow
def test_a_cut_off_image_is_told_while_truncated_loading_is_on(open_lab, tmp_path):
    for number in range(3):
        Image.fromarray(PIXELS).save(tmp_path / f"{number}.jpg")
    content = (tmp_path / "1.jpg").read_bytes()
    (tmp_path / "1.jpg").write_bytes(content[: len(content) // 2])
    code = target(
        f'return np.asarray(Image.open("{tmp_path}/" + str(index) + ".jpg"))',
        size=3,
        imports="from PIL import Image, ImageFile\nImageFile.LOAD_TRUNCATED_IMAGES = True",
    )
    reads = read_all(open_lab(code), 3)
    assert [[image.is_cut_off for image in read.images] for read in reads] == [[False], [True], [False]]
