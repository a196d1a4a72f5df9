import { createChance } from "@statewright/testing";
import { expect, test } from "vitest";
import { applyEdits } from "../src/edits.ts";

test("random edits equal manual replacement and change nothing when repeated", () => {
  const chance = createChance(7);
  for (let round = 0; round < 500; round++) {
    const ends = Array.from({ length: 12 }, () => (chance.flip(0.5) ? "\n" : "\r\n"));
    const lines = ends.map((_, at) => `line ${round} ${at};`);
    const chosen = lines.filter(() => chance.flip(0.3));
    if (chosen.length === 0) continue;
    const edits = chosen.map((line) => ({
      old: line,
      new: chance.flip(0.5) ? `${line} more` : `<${line.length}${line}>`,
    }));
    const getText = (all: readonly string[]) => all.map((line, at) => line + ends[at]).join("");
    const expected = getText(lines.map((line) => edits.find(({ old }) => old === line)?.new ?? line));
    const once = applyEdits(getText(lines), edits);
    expect(once).toEqual({ text: expected, isDone: false });
    expect(applyEdits(once.text, edits)).toEqual({ text: expected, isDone: true });
  }
});

test("an edit over lines with both line ends keeps the other text unchanged", () => {
  const { text } = applyEdits("a\r\nb\nc\r\nd", [{ old: "a\nb\nc", new: "A\nB\nB\nC" }]);
  expect(text).toBe("A\r\nB\r\nB\r\nC\r\nd");
  expect(applyEdits("a\rb\n", [{ old: "a\rb", new: "c" }]).text).toBe("c\n");
  expect(applyEdits("one line", [{ old: "one", new: "1\n2" }]).text).toBe("1\n2 line");
});

test("an edit is refused when the text has neither the old nor the new string, and so is a repeated deletion", () => {
  expect(() => applyEdits("abc", [{ old: "x", new: "y" }])).toThrow("does not occur in the file");
  expect(() => applyEdits("ac", [{ old: "b", new: "" }])).toThrow("does not occur in the file");
});

/** Returns the error text of a refused edit. */
function getErrorText(text: string, old: string): string {
  try {
    applyEdits(text, [{ old, new: "new" }]);
  } catch (error) {
    return String(error);
  }
  throw new Error("it was made");
}

test("an edit with a typo in its old text fails with the nearest lines and their difference", () => {
  const file =
    "import a;\n\nfunction add(one, two) {\n\treturn one + two;\n}\n\nfunction sub(one, two) {\n\treturn one - two;\n}\n";
  expect(getErrorText(file, "function ad(one, two) {")).toContain('The nearest is line 3: "function add(one, two) {".');
  expect(getErrorText(file, "  return one - two;")).toContain(
    'The nearest is line 8, which differs in white space only: "\\treturn one - two;".',
  );
  expect(getErrorText(file, "function sub(one, two) {\n\treturn one – two;\n}")).toContain(
    'The nearest are lines 7 to 9: line 8 is "\\treturn one - two;", but "\\treturn one – two;" was given.',
  );
  expect(getErrorText(file, "sub(one, two) {\n  return one - two;\n}")).toContain(
    'lines 7 to 9, which differ in white space only: line 8 is "\\treturn one - two;"',
  );
  expect(getErrorText(file, "\treturn one - two;\n}\n\n// end\n")).toContain(
    "the file ends before the last given line",
  );
  expect(getErrorText(`${file}\n${"x\n".repeat(2 ** 19)}`, "function ad(one, two) {")).toMatch(
    /the file\. Read the file/,
  );
  expect(getErrorText("x".repeat(900), "x".repeat(901))).toContain(`"${"x".repeat(200)}…"`);
  for (const nothing of ["class Other extends Base {", "\n\n\n\n"])
    expect(getErrorText(file, nothing)).toMatch(/does not occur in the file\. Read the file/);
});

test("an edit whose old text occurs several times fails with the count and the lines", () => {
  expect(getErrorText("a\nb a\nc", "a")).toContain("occurs in the file 2 times, in lines 1, 2. Include more");
  expect(getErrorText("aaa", "a")).toContain("3 times, in line 1.");
  expect(getErrorText("x\n".repeat(9), "x")).toContain("9 times, in lines 1, 2, 3, 4, 5, …");
});
