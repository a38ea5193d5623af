"""Put the folders that stand beside the code into the wheel, under app/_shipped.

In the repository, templates, static files and migrations have folders of their own. An installed server finds them
inside its package; app/shipped.py knows both places. All else about the build is in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("templates", "static", "migrations")


class BuildWithFolders(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in SHIPPED:
            source = Path(__file__).parent / name
            if source.is_dir():
                target = Path(self.build_lib) / "app" / "_shipped" / name
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


setup(cmdclass={"build_py": BuildWithFolders})
