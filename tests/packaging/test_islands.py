"""Parts that are used beside the server: each works without the rest of the package or its dependencies."""

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"

DECODER = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("decode", {str(SOURCES / "msmq_fast/store/decode.py")!r})
sys.modules["decode"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.POSITION.size)
"""

CLIENT = f"""
import sys

class Guard:
    refused = {{"lmdb", "uvloop", "aiohttp", "prometheus_client"}} | {{
        "msmq_fast." + room for room in ("admin", "cli", "mqqb", "qm", "server", "store")
    }}
    def find_spec(self, name, path=None, target=None):
        if name in self.refused:
            raise ImportError("imports " + name)

sys.meta_path.insert(0, Guard())
sys.path.insert(0, {str(SOURCES)!r})
import msmq_fast
print(msmq_fast.connect, msmq_fast.sync)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_record_decoder_needs_nothing_but_the_standard_library():
    done = run("-I", "-S", "-c", DECODER)  # -S: no site-packages
    assert done.returncode == 0, done.stderr


def test_the_client_needs_neither_the_server_nor_its_store():
    done = run("-I", "-c", CLIENT)
    assert done.returncode == 0, done.stderr


SPARK = f"""
import sys

class Guard:
    refused = {{"lmdb", "uvloop", "aiohttp", "prometheus_client", "cryptography", "msgpack", "matplotlib"}}
    rooms = "_native", "admin", "app", "mqqb", "qm", "security", "server", "packet"
    def find_spec(self, name, path=None, target=None):
        if name in self.refused or name in ["msmq_fast." + room for room in self.rooms]:
            raise ImportError("imports " + name)

sys.meta_path.insert(0, Guard())
sys.path.insert(0, {str(SOURCES)!r})
import pyspark_msmq, pyspark_msmq_store, pyspark_msmq_pcap
import msmq_fast.client.bulk.client
import msmq_fast.spark.functions, msmq_fast.spark.lake.main, msmq_fast.spark.sink
print(pyspark_msmq.DefaultSource.name())
"""


def test_the_spark_side_needs_neither_the_server_nor_native_code() -> None:
    """Executors may have nothing but PySpark, pyarrow and these sources; captures and stores need more when
    they are read.
    """
    done = run("-I", "-c", SPARK)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "msmq\n"
