import { expect, test } from "vitest";
import { renderReport } from "../../src/report.ts";

test("the audit report escapes Markdown, HTML and terminal sequences from models and files [R20]", () => {
  const hostile = 'x\u001b[2J\n# h\n| <img src=x onerror="a()"> [a](javascript:b) `c` **d** _e_ &lt; \\| \u202e';
  const state = {
    verdict: { grade: hostile, summary: hostile },
    facts: { [hostile]: hostile },
    findings: [{ severity: "high", path: hostile, title: hostile }],
    parts: [],
    decision: { note: hostile },
  };
  const report = renderReport(state as never, hostile);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches terminal control characters
  expect(report).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  expect(report.split("\n").filter((line) => line.startsWith("#"))).toEqual(["# Audit", "## Measured", "## Findings"]);
  // Outside of the text of the report itself, every Markdown character is escaped by a backslash, and no HTML element begins.
  const signs = report.replaceAll(/\\./g, "").replaceAll("&lt;", "");
  expect(signs).not.toMatch(/[<`[\]&_]/);
  expect(
    signs
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.split("|").length),
  ).toEqual([5, 5, 5]);
});
