import { chanceOf } from "@statewright/testing";
import { expect, test } from "vitest";
import { applyEdits } from "../src/edits.ts";

test("edits at random do what replacing by hand does, and made again they change nothing", () => {
  const chance = chanceOf(7);
  for (let round = 0; round < 500; round++) {
    const ends = Array.from({ length: 12 }, () => (chance.share(0.5) ? "\n" : "\r\n"));
    const lines = ends.map((_, at) => `line ${round} ${at};`);
    const chosen = lines.filter(() => chance.share(0.3));
    if (chosen.length === 0) continue;
    const edits = chosen.map((line) => ({
      old: line,
      new: chance.share(0.5) ? `${line} more` : `<${line.length}${line}>`,
    }));
    const textOf = (all: readonly string[]) => all.map((line, at) => line + ends[at]).join("");
    const expected = textOf(lines.map((line) => edits.find(({ old }) => old === line)?.new ?? line));
    const once = applyEdits(textOf(lines), edits);
    expect(once).toEqual({ text: expected, isDone: false });
    expect(applyEdits(once.text, edits)).toEqual({ text: expected, isDone: true });
  }
});

test("an edit over several lines of both kinds keeps what it does not touch", () => {
  const { text } = applyEdits("a\r\nb\nc\r\nd", [{ old: "a\nb\nc", new: "A\nB\nB\nC" }]);
  expect(text).toBe("A\r\nB\r\nB\r\nC\r\nd");
  expect(applyEdits("a\rb\n", [{ old: "a\rb", new: "c" }]).text).toBe("c\n");
  expect(applyEdits("one line", [{ old: "one", new: "1\n2" }]).text).toBe("1\n2 line");
});

test("a text that holds neither the old nor the new is refused, and so is a deletion that was made", () => {
  expect(() => applyEdits("abc", [{ old: "x", new: "y" }])).toThrow("does not stand in the file");
  expect(() => applyEdits("ac", [{ old: "b", new: "" }])).toThrow("does not stand in the file");
});
