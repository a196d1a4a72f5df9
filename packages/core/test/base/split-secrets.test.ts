import { expect, test } from "vitest";
import { withoutSplit } from "../../src/base/redaction/redact-chunks.ts";

const text = (part: string) => ({ type: "text", text: part }) as const;
const key = "sk-live-7781-abc";

test("a secret over several blocks has one blot, also twice, beside a whole one, with another over it, and over empty blocks", () => {
  const secrets = [key, "7781-abc-zz"];
  const without = (...parts: readonly string[]) => withoutSplit(parts.map(text), secrets).map((block) => block.text);
  expect(without("a sk-li", "ve-7781-abc b")).toEqual(["a [secret]", " b"]);
  expect(without("a sk-li", "ve-7781-abc sk-live-77", "81-abc")).toEqual(["a [secret]", " [secret]"]);
  expect(without("a sk-li", "ve-7781-abc-", "zz b")).toEqual(["a [secret]", " b"]);
  expect(without("", "a sk-li", "", "ve-7781-abc", "")).toEqual(["", "a [secret]", "", ""]);
  // A whole one is for whoever masks the block itself.
  expect(without(`${key} sk-`, "live-7781-abc")).toEqual([`${key} [secret]`]);
  const untouched = [text(key), text(key), { type: "image" }];
  expect(withoutSplit(untouched, secrets)).toBe(untouched);
});

test("very many blocks with as many secrets over them are no work that grows with their square", () => {
  const blocks = Array.from({ length: 100_000 }, (_, nth) => text(nth % 2 === 0 ? "a sk-live-" : "7781-abc b"));
  const without = withoutSplit(blocks, [key]);
  expect(without.slice(-2)).toEqual([text("a [secret]"), text(" b")]);
});
