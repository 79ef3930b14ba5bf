"""llm, small_llm, judge.llm, and search engines: who is asked over a wire."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rag_arena.params.sections import Money, Natural, Positive, Section, Variable, holds_password


class Endpoint(Section):
    """Who answers: everything that can change a reply."""

    kind: Literal["embedded", "openai"] = Field(description="embedded: SmolLM2-135M in process; openai: any compatible server")
    model: Annotated[str, Field(min_length=1)] = Field(description="model name as the server knows it")
    base_url: str = Field("", description="URL up to and including /v1 (openai only)")
    api_key_env: Variable = Field(
        "OPENAI_API_KEY", description="environment variable that holds the key; empty: the server wants none"
    )
    temperature: float | None = Field(0.0, description="null: not sent")
    seed: int | None = Field(None, description="null: not sent")
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = Field("max_tokens", description="what the server calls it")
    structured_output: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema", description="how the judge's replies are held to a shape: by schema, as JSON, or by asking for it"
    )
    top_logprobs: Annotated[int, Field(ge=0, le=20)] = Field(
        20, description="likeliest tokens asked for where a verdict is a probability; 0: the server gives none, ask for JSON"
    )
    verdict_tokens: Positive = Field(32, description="longest reply that holds a verdict in JSON; raise it for a reasoning model")
    max_prompt_characters: Positive | None = Field(
        None, description="a longer prompt fails its question instead of being sent; null: the server decides"
    )
    threads: Positive = Field(1, description="computing threads (embedded only); changes replies in the last bits")
    context_tokens: Positive = Field(8192, description="context window (embedded only)")

    @model_validator(mode="after")
    def _has_url(self) -> "Endpoint":
        if self.kind == "openai" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https:// when kind is openai")
        if holds_password(self.base_url):
            raise ValueError("base_url must not hold a password, which would be kept with the results; use api_key_env")
        return self


class Transport(Section):
    """How requests travel. Nothing here can change a reply, so no stage depends on it."""

    max_concurrency: Positive = Field(description="requests under way at once")
    deadline_s: Annotated[float, Field(gt=0)] = Field(description="seconds one attempt may take in all, however slowly it drips")
    max_retries: Natural = Field(description="further attempts after 408, 409, 429, 5xx or a lost connection")


class Price(Section):
    """Dollars per million tokens."""

    input: Money = Field(description="of the prompt")
    output: Money = Field(description="of the reply")

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Dollars for so many tokens."""
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


class Llm(Section):
    """A language model: who answers, how requests travel, what it costs."""

    endpoint: Endpoint
    transport: Transport
    price: Price


class Web(Section):
    """A search engine outside the corpus. How requests travel is `llm.transport`'s."""

    base_url: str = Field(
        description="searxng: the instance's root, as http://localhost:8888; wikipedia: its api.php, as "
        "https://en.wikipedia.org/w/api.php"
    )
    api_key_env: Variable = Field(description="environment variable that holds a bearer token; empty: none is sent")

    @model_validator(mode="after")
    def _keeps_no_password(self) -> "Web":
        if holds_password(self.base_url):
            raise ValueError("base_url must not hold a password, which would be kept with the results; use api_key_env")
        return self
