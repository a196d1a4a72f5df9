import { inspect } from "node:util";
import { expect, test } from "vitest";
import { escapeControlChars } from "../../src/adapter.ts";
import { StatewrightError, toolRegistry } from "../../src/index.ts";

const steers = "\u001b]0;title\u0007\u001b[2J\u009b31m\u202egnp.exe\u2066\r\u007f\u2028";
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches terminal control characters
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u202a-\u202e\u2066-\u2069]/;

test("an error escapes characters that control a terminal or change the text direction [R20]", () => {
  const error = new StatewrightError("invalid_option", {
    what: `the file ${steers} is none`,
    next: `Mend\n\t${steers}`,
    place: { node: steers },
  });
  expect(error.message).toContain("\\u001b[2J\\u009b31m\\u202egnp.exe\\u2066\\u000d\\u007f\\u2028");
  expect(error.message).toContain("Mend\n\t");
  for (const shown of [error.message, error.stack ?? "", String(error)]) expect(shown).not.toMatch(steering);
  expect(inspect(error)).not.toContain("\u001b");
  expect(() => toolRegistry().forModel([steers])).toThrow("\\u202egnp");
});

test("printable text of any language is unchanged", () => {
  const words = "数据库 🚀 שלום naïve\tx\ny";
  expect(escapeControlChars(words)).toBe(words);
});
