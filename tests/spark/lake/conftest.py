"""A session for the lake's small tables, and one audited play for all tests that only look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from msmq_fast.spark.lake import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.lake.plays import Play

SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For some hundred rows compiling takes longer than running."""


@pytest.fixture(scope="session")
def small(spark: SparkSession) -> SparkSession:
    """As the lake's verbs prepare it, for small tables."""
    found = session.prepared(spark)
    for key, value in SMALL.items():
        found.conf.set(key, value)
    return found


@pytest.fixture(scope="session")
def few(spark: SparkSession) -> SparkSession:
    """As the lake's verbs prepare it for few rows, which the driver reads and writes itself."""
    found = session.prepared(spark)
    for key, value in (SMALL | session.FEW).items():
        found.conf.set(key, value)
    return found


@pytest.fixture(scope="session")
def play(few: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Six pairs of queue managers with every kind of fault, archived and audited. Do not change it."""
    from tests.spark.lake.plays import Play

    return Play(few, tmp_path_factory.mktemp("play"), range(6))
