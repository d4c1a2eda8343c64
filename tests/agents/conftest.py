from __future__ import annotations

from pathlib import Path

import pytest

CODE = {
    "net/upload.py": '''class Uploader:
    def retry(self, job, attempts=3):
        """Send a failed upload again, waiting longer each time."""
        for attempt in range(attempts):
            job.send()
''',
    "time/cron.py": '''def parse_cron(text):
    """Split a cron expression into its five fields."""
    return text.split()


def next_run(fields, now):
    """When a schedule comes due after a moment."""
    return now
''',
    "web/cookies.go": """package web

// ParseCookies reads the cookies of a request.
func ParseCookies(header string) map[string]string {
	return nil
}
""",
}


def write(folder: Path, files: dict[str, str] = CODE) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "app")
