import { expect, test } from "vitest";
import { redactSplitSecrets } from "../../src/base/redaction/redact-chunks.ts";

const text = (part: string) => ({ type: "text", text: part }) as const;
const key = "sk-live-7781-abc";

test("a secret split over several text blocks is redacted once, also when repeated, overlapping or split by empty blocks", () => {
  const secrets = [key, "7781-abc-zz"];
  const redactParts = (...parts: readonly string[]) =>
    redactSplitSecrets(parts.map(text), secrets).map((block) => block.text);
  expect(redactParts("a sk-li", "ve-7781-abc b")).toEqual(["a [secret]", " b"]);
  expect(redactParts("a sk-li", "ve-7781-abc sk-live-77", "81-abc")).toEqual(["a [secret]", " [secret]"]);
  expect(redactParts("a sk-li", "ve-7781-abc-", "zz b")).toEqual(["a [secret]", " b"]);
  expect(redactParts("", "a sk-li", "", "ve-7781-abc", "")).toEqual(["", "a [secret]", "", ""]);
  // A secret inside one block is left to the redaction of that block.
  expect(redactParts(`${key} sk-`, "live-7781-abc")).toEqual([`${key} [secret]`]);
  const untouched = [text(key), text(key), { type: "image" }];
  expect(redactSplitSecrets(untouched, secrets)).toBe(untouched);
});

test("redaction of 100,000 text blocks with split secrets is not quadratic", () => {
  const blocks = Array.from({ length: 100_000 }, (_, nth) => text(nth % 2 === 0 ? "a sk-live-" : "7781-abc b"));
  const without = redactSplitSecrets(blocks, [key]);
  expect(without.slice(-2)).toEqual([text("a [secret]"), text(" b")]);
});
