/** What is remembered of long lists says what a look through them would. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message } from "../../src/index.ts";
import { appended, hasAnyOf, hasNotes } from "../../src/state/message-index.ts";

function message(id: string, isNoted: boolean): Message {
  const said = { role: "assistant", id, content: [{ type: "text", text: id }], finish: "stop" } as const;
  return isNoted ? { ...said, offered: ["search"] } : said;
}

const fresh = (from: number, count: number, noted: number): Message[] =>
  Array.from({ length: count }, (_, nth) => message(`m${from + nth}`, from + nth === noted));

test("a note and an id are found in a list of any length, however it came about", () => {
  const parts = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(parts, fc.integer({ min: -1, max: 300 }), (sizes, noted) => {
      let list: readonly Message[] = Object.freeze([]);
      for (const size of sizes) {
        const more = fresh(list.length, size, noted);
        expect(hasAnyOf(list, more)).toBe(false);
        list = appended(list, more);
        expect(hasAnyOf(list, [message(`m${list.length - 1}`, false)])).toBe(true);
        expect(hasNotes(list)).toBe(noted >= 0 && noted < list.length);
      }
    }),
  );
});

test("two lists that go on from the same one know nothing of each other", () => {
  const before = appended([], fresh(0, 100, -1));
  expect(hasAnyOf(before, fresh(100, 1, -1))).toBe(false);
  const [left, right] = [appended(before, [message("left", true)]), appended(before, [message("right", false)])];
  expect([hasNotes(before), hasNotes(left), hasNotes(right)]).toEqual([false, true, false]);
  expect([hasAnyOf(left, [message("right", false)]), hasAnyOf(right, [message("left", false)])]).toEqual([
    false,
    false,
  ]);
});

test("lists that begin alike and hold the same messages elsewhere are told apart", () => {
  const before = appended([], fresh(0, 100, -1));
  expect(hasAnyOf(before, fresh(100, 1, -1))).toBe(false);
  const [left, right] = [message("left", false), message("right", true)];
  const lists = [[left], [right, left], [left, right], [right]].map((added) => appended(before, added));
  expect(lists.map((list) => [hasAnyOf(list, [left]), hasAnyOf(list, [right]), hasNotes(list)])).toEqual([
    [true, false, false],
    [true, true, true],
    [true, true, true],
    [false, true, true],
  ]);
});

test("a list that is gone on from twice is looked through once", () => {
  let looks = 0;
  const counted = fresh(0, 100, -1).map((said) => ({
    ...said,
    get id() {
      looks += 1;
      return said.id;
    },
  }));
  const before = appended([], counted);
  const more = fresh(100, 1, -1);
  expect(hasAnyOf(before, more)).toBe(false);
  const first = looks;
  const next = appended(before, more);
  expect([hasAnyOf(before, more), hasAnyOf(next, more)]).toEqual([false, true]);
  expect(hasAnyOf(appended(before, more), fresh(101, 1, -1))).toBe(false);
  expect(looks).toBe(first);
});
