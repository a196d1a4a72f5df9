import { StatewrightError } from "@statewright/core";
import { getModelFailureKind } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import { toModelError } from "../src/failure.ts";

const failure = (thrown: unknown, during: "request" | "stream" = "request"): StatewrightError =>
  toModelError(thrown, { model: "made/one", phase: during });

const named = (name: string, message: string, fields: object = {}): Error =>
  Object.assign(new Error(message), { name }, fields);

const api = (fields: object): Error =>
  named("AI_APICallError", "no", { url: "https://x.example", requestBodyValues: { a: 1 }, ...fields });

describe("retryable failures", () => {
  test.each<[string, boolean, unknown, "request" | "stream"]>([
    ["a retryable flag of the client", false, api({ statusCode: 503, isRetryable: false }), "request"],
    ["a status without a retryable flag", true, { statusCode: 503, message: "busy" }, "request"],
    ["a client error status", false, { statusCode: 422, message: "no" }, "request"],
    ["a limit", true, { statusCode: 429, message: "slow" }, "request"],
    ["an answer of 200 that cannot be read", true, api({ statusCode: 200, isRetryable: false }), "request"],
    ["no connection", true, named("TypeError", "fetch failed"), "request"],
    ["an unknown error of the client", false, named("AI_UnsupportedFunctionalityError", "no audio"), "request"],
    ["the same error in a stream", false, named("AI_UnsupportedFunctionalityError", "no audio"), "stream"],
    ["a bug in the client", false, new TypeError("x is not a function"), "request"],
    ["anything that broke a stream", true, new TypeError("terminated"), "stream"],
    ["an unreadable frame", true, named("AI_JSONParseError", "Unexpected token"), "request"],
    ["a time limit of the client", true, named("TimeoutError", "too slow"), "request"],
    [
      "an empty account",
      false,
      api({ statusCode: 429, isRetryable: true, data: { error: { code: "insufficient_quota" } } }),
      "request",
    ],
    ["words without a shape", true, "oops", "stream"],
    ["an undefined error", true, undefined, "stream"],
  ])("a failure is retryable or final: %s", (_what, retryable, thrown, during) => {
    const error = failure(thrown, during);
    expect(error.code).toBe("model_failed");
    expect(error.details).toMatchObject({ retryable });
  });
});

describe("failure kinds", () => {
  test.each<[string, unknown, "request" | "stream"]>([
    ["rate_limit", { statusCode: 429, message: "slow" }, "request"],
    ["rate_limit", { type: "error", error: { type: "rate_limit_error", message: "slow" } }, "stream"],
    ["overloaded", { statusCode: 529, message: "busy" }, "request"],
    ["overloaded", { type: "error", error: { type: "overloaded_error", message: "busy" } }, "stream"],
    ["server_error", { statusCode: 500, message: "no" }, "request"],
    ["server_error", { type: "error", error: { type: "api_error", message: "no" } }, "stream"],
    ["connection", named("TypeError", "fetch failed"), "request"],
    ["timeout", { statusCode: 408, message: "no" }, "request"],
    ["timeout", named("TimeoutError", "too slow"), "request"],
    ["broken_reply", new TypeError("terminated"), "stream"],
    ["broken_reply", api({ statusCode: 200, isRetryable: false }), "request"],
    ["broken_reply", named("AI_JSONParseError", "Unexpected token"), "request"],
    ["auth", { statusCode: 401, message: "no" }, "request"],
    ["quota", api({ statusCode: 429, data: { error: { code: "insufficient_quota" } } }), "request"],
    ["not_found", { statusCode: 404, message: "no" }, "request"],
    ["context_length", api({ statusCode: 400, data: { error: { code: "context_length_exceeded" } } }), "request"],
    ["context_length", { statusCode: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" }, "request"],
    ["invalid_request", { statusCode: 400, message: "no" }, "request"],
    ["invalid_request", named("AI_UnsupportedFunctionalityError", "no audio"), "request"],
    ["other", new TypeError("x is not a function"), "request"],
  ])("a failure has the kind %s: case %#", (kind, thrown, during) => {
    expect(failure(thrown, during).details).toMatchObject({ kind });
    expect(getModelFailureKind(failure(thrown, during))).toBe(kind);
  });
});

describe("errors of providers without a precise status", () => {
  const google = (details: readonly object[], message = "no") =>
    JSON.stringify({ error: { code: 400, status: "INVALID_ARGUMENT", message, details } });

  test("Google's API_KEY_INVALID with status 400 is a failure of auth [FX95]", () => {
    const responseBody = google([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }]);
    const error = failure(api({ statusCode: 400, isRetryable: false, responseBody }));
    expect(error.details).toMatchObject({ kind: "auth", retryable: false, status: 400 });
    expect(error.message).toContain("Check the API key");
  });

  test("Anthropic's low credit balance with status 400 is a failure of quota [FX95]", () => {
    const thrown = named("AI_APICallError", "Your credit balance is too low to access the Anthropic API.", {
      statusCode: 400,
      isRetryable: false,
      data: { type: "error", error: { type: "invalid_request_error" } },
    });
    expect(failure(thrown).details).toMatchObject({ kind: "quota", retryable: false });
  });

  test("Google's RetryInfo in the body is the retry time, unless a header gives one [FX95]", () => {
    const responseBody = google([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "37.5s" }]);
    const limited = { statusCode: 429, isRetryable: true, responseBody };
    expect(failure(api(limited)).details).toMatchObject({ kind: "rate_limit", retryAfterMs: 37_500 });
    expect(failure(api({ ...limited, responseHeaders: { "retry-after": "3" } })).details).toMatchObject({
      retryAfterMs: 3_000,
    });
  });

  test.each([undefined, true, false])("a conflict is retried when the client reports isRetryable %s [FX95]", (flag) => {
    expect(failure(api({ statusCode: 409, isRetryable: flag })).details).toMatchObject({
      kind: "server_error",
      retryable: true,
    });
  });

  test("a redirect loop is not retried [FX95]", () => {
    const thrown = named("AI_APICallError", "Cannot connect to API: redirect count exceeded", { isRetryable: true });
    expect(failure(thrown).details).toMatchObject({ kind: "connection", retryable: false });
  });
});

describe("retry times", () => {
  const wait = (responseHeaders: object): unknown => failure(api({ statusCode: 429, responseHeaders })).details;

  test.each([
    [{ "retry-after": "3" }, 3000],
    [{ "Retry-After": "0.5" }, 500],
    [{ "retry-after": "3", "retry-after-ms": "2750" }, 2750],
    [{ "retry-after": "Tue, 14 Nov 2023 22:13:30 GMT", date: "Tue, 14 Nov 2023 22:13:20 GMT" }, 10_000],
  ])("the retry time is read from the headers %j", (headers, retryAfterMs) => {
    expect(wait(headers)).toEqual({ retryable: true, kind: "rate_limit", status: 429, retryAfterMs });
  });

  test.each([
    [{}],
    [{ "retry-after": "soon" }],
    [{ "retry-after": "-1" }],
    [{ "retry-after": "Tue, 14 Nov 2023 22:13:30 GMT" }],
  ])("no retry time is read from the headers %j", (headers) => {
    expect(wait(headers)).toEqual({ retryable: true, kind: "rate_limit", status: 429 });
  });
});

describe("failure messages", () => {
  test("a model failure message contains no key and no request and is bounded in length", () => {
    const error = toModelError(
      api({
        statusCode: 401,
        message: `Bad key AIzaSyA1234567890abc or sk-proj-abcdef123 for Bearer zzz.yyy at /v1?key=opensesame, header tok with-dashes ${"x".repeat(5000)}`,
        requestBodyValues: { messages: "very private" },
      }),
      { model: "made/one", phase: "request", headers: { authorization: "Token with-dashes" } },
    );
    const all = [error.message, JSON.stringify(error), String(error.cause), JSON.stringify(error.cause)].join();
    for (const secret of ["AIzaSyA", "sk-proj", "zzz.yyy", "opensesame", "with-dashes", "private"])
      expect(all).not.toContain(secret);
    expect(error.message.length).toBeLessThan(600);
  });

  test("a missing key failure names its environment variable", () => {
    const error = failure(
      named(
        "AI_LoadAPIKeyError",
        "Made API key is missing. Pass it using the 'apiKey' parameter or the MADE_API_KEY environment variable.",
      ),
    );
    expect(error.code).toBe("missing_secret");
    expect(error.message).toContain("MADE_API_KEY");
  });

  test("a StatewrightError passes unchanged through failure conversion", () => {
    const ours = new StatewrightError("model_failed", { what: "no", next: "Wait", details: { retryable: false } });
    expect(failure(ours)).toBe(ours);
  });
});
