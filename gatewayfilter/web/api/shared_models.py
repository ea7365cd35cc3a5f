"""Answers that several subjects of the API have."""

from typing import Annotated

from pydantic import BaseModel, Field


class ValueModel(BaseModel):
    """A value of a policy that is in force."""

    key: Annotated[str, Field(description="As `policy set` takes it: category.NAME, safesearch …")]
    value: Annotated[str, Field(description="Likewise.")]
    origin: Annotated[str, Field(description="`client NAME`, `group NAME`, `default`, or `settings`.")]
    policy: Annotated[str, Field(description="The policy that sets it, empty for the settings.")]


class RemovedModel(BaseModel):
    """A number of items that were removed."""

    removed: Annotated[int, Field(description="How many.")]
