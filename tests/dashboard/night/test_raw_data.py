"""What a night measured is kept: databases sealed, everything else zipped, the oldest nights removed."""

from __future__ import annotations

import zipfile

import pytest

from tests.dashboard import homes
from tvmdash import traces

DATABASE = """python3 - "$2" <<'END'
import sys
from pathlib import Path
from tvmdash.measure.capture import Capture, Sample
with Capture(Path(sys.argv[1]), {}) as capture:
    for number in range(3):
        capture.end(capture.begin({"workload": "toy.sum", "values": {}}), samples=[Sample(1000, 1), Sample(3000, 1)])
END"""


@pytest.fixture
def place(tmp_path, tvm_artifact_folder):
    return homes.make_home(tmp_path, tvm_artifact_folder)


def kept(place, name="good"):
    return sorted(path.name for path in (place.root / "tmp" / "raw" / name).iterdir())


def test_databases_are_sealed_and_what_else_there_is_is_zipped(place):
    place.experiment(run=homes.good("run", DATABASE))
    place.night()
    (stamp,) = place.stamps()
    assert kept(place) == [f"raw_{stamp}", f"raw_{stamp}.zip"]
    folder = place.root / "tmp" / "raw" / "good"
    assert "raw.json" in zipfile.ZipFile(folder / f"raw_{stamp}.zip").namelist()
    with traces.connect([folder / f"raw_{stamp}"]) as connection:
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (3,)


def test_what_a_killed_run_left_of_its_compiled_points_is_not_kept(place):
    left = 'mkdir -p "$2/prebuilt/tonight/point"; head -c 100 /dev/urandom > "$2/prebuilt/tonight/point/library_1.so"\n'
    place.experiment(run=homes.good("run", left + DATABASE))
    place.night()
    (stamp,) = place.stamps()
    names = zipfile.ZipFile(place.root / "tmp" / "raw" / "good" / f"raw_{stamp}.zip").namelist()
    assert "raw.json" in names
    assert not [name for name in names if name.startswith("prebuilt")]


def test_databases_that_cannot_be_sealed_are_zipped_as_they_are(place):
    place.experiment(run=homes.good("run", 'head -c 5000 /dev/urandom > "$2/raw_1_1.db"'))
    place.night()
    (stamp,) = place.stamps()
    assert kept(place) == [f"raw_{stamp}.zip"]
    assert "raw_1_1.db" in zipfile.ZipFile(place.root / "tmp" / "raw" / "good" / f"raw_{stamp}.zip").namelist()


def test_the_oldest_nights_beyond_the_limit_are_removed_whole(place):
    place.configure(keep_raw_nights=2)
    place.experiment(run=homes.good("run", DATABASE))
    for _ in range(3):
        place.night()
    newest = place.stamps()[-2:]
    assert kept(place) == sorted(name for stamp in newest for name in (f"raw_{stamp}", f"raw_{stamp}.zip"))


def test_tonights_are_kept_by_a_clock_that_was_turned_back_and_what_no_night_named_is_left_alone(place):
    place.configure(keep_raw_nights=2)
    place.experiment(run=homes.good("run", DATABASE))
    for _ in range(4):
        place.night()
    of_somebody = place.root / "tmp" / "raw" / "good" / "raw_0_notes"
    of_somebody.mkdir()
    assert place.run_at([-3650 * 86400.0]).code == 0
    tonight = place.stamps()[0]
    assert {f"raw_{tonight}", f"raw_{tonight}.zip", of_somebody.name} < set(kept(place))
    assert len(kept(place)) == 5


def test_a_run_that_failed_keeps_what_it_had_measured(place):
    place.experiment(run=f"{homes.BEGIN}{DATABASE}\n{homes.says('run', 'too hot', success=False)}\n")
    assert place.run().code == 1
    (stamp,) = place.stamps()
    assert f"raw_{stamp}" in kept(place)


def test_the_oldest_nights_go_where_all_raw_measurements_take_too_many_bytes_and_tonights_stay(place):
    for name in ("good", "other"):
        place.experiment(name, run=homes.good("run", 'head -c 40000 /dev/urandom > "$2/x"'))
    place.configure(max_raw_gb=0.0002)
    for _ in range(3):
        place.night()
    newest = [f"raw_{stamp}.zip" for stamp in place.stamps()[-2:]]
    assert (kept(place), kept(place, "other")) == (newest, newest)
    place.configure(max_raw_gb=0)
    place.night()
    tonight = [f"raw_{place.stamps()[-1]}.zip"]
    assert (kept(place), kept(place, "other")) == (tonight, tonight)
