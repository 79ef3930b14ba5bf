"""Models behind an HTTP endpoint that is not a chat: embedders and rerankers."""

from typing import Annotated

from pydantic import Field, model_validator

from rag_arena.params.sections import Positive, Section, Variable, holds_password

Named = Annotated[str, Field(min_length=1)]


class Served(Section):
    """Who is asked over HTTP. How requests travel is `served`'s."""

    base_url: str = Field(description="URL that the path of the request is put after, as http://localhost:8000/v1")
    model: Named = Field(description="model name as the server knows it")
    api_key_env: Variable = Field(
        description="environment variable that holds the key, sent as a bearer token; empty: none is sent"
    )
    max_characters: Positive = Field(description="characters sent of a text; the rest is cut")
    batch_size: Positive = Field(description="texts per request, at most")

    @model_validator(mode="after")
    def _has_url(self) -> "Served":
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https://")
        if holds_password(self.base_url):
            raise ValueError("base_url must not hold a password, which would be kept with the results; use api_key_env")
        return self
