/** Memoized lookups in long message lists equal a full scan. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message } from "../../src/index.ts";
import { appendMessages, hasAnyId, toSentMessages } from "../../src/state/channel.ts";

function message(id: string, isNoted: boolean): Message {
  const said = { role: "assistant", id, content: [{ type: "text", text: id }], finish: "stop" } as const;
  return isNoted ? { ...said, offered: ["search"] } : said;
}

const createMessages = (from: number, count: number, noted: number): Message[] =>
  Array.from({ length: count }, (_, nth) => message(`m${from + nth}`, from + nth === noted));

test("a note and an id are found in a message list of any length and origin", () => {
  const parts = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(parts, fc.integer({ min: -1, max: 300 }), (sizes, noted) => {
      let list: readonly Message[] = Object.freeze([]);
      for (const size of sizes) {
        const more = createMessages(list.length, size, noted);
        expect(hasAnyId(list, more)).toBe(false);
        list = appendMessages(list, more);
        expect(hasAnyId(list, [message(`m${list.length - 1}`, false)])).toBe(true);
        expect(toSentMessages(list) !== list).toBe(noted >= 0 && noted < list.length);
      }
    }),
  );
});

test("two message lists that extend the same list are independent", () => {
  const before = appendMessages([], createMessages(0, 100, -1));
  expect(hasAnyId(before, createMessages(100, 1, -1))).toBe(false);
  const [left, right] = [
    appendMessages(before, [message("left", true)]),
    appendMessages(before, [message("right", false)]),
  ];
  expect([before, left, right].map((list) => toSentMessages(list) !== list)).toEqual([false, true, false]);
  expect([hasAnyId(left, [message("right", false)]), hasAnyId(right, [message("left", false)])]).toEqual([
    false,
    false,
  ]);
});

test("message lists with a common start and the same messages in other positions are distinguished", () => {
  const before = appendMessages([], createMessages(0, 100, -1));
  expect(hasAnyId(before, createMessages(100, 1, -1))).toBe(false);
  const [left, right] = [message("left", false), message("right", true)];
  const lists = [[left], [right, left], [left, right], [right]].map((added) => appendMessages(before, added));
  expect(lists.map((list) => [hasAnyId(list, [left]), hasAnyId(list, [right]), toSentMessages(list) !== list])).toEqual(
    [
      [true, false, false],
      [true, true, true],
      [true, true, true],
      [false, true, true],
    ],
  );
});

test("a message list that is extended twice is scanned once", () => {
  let looks = 0;
  const counted = createMessages(0, 100, -1).map((said) => ({
    ...said,
    get id() {
      looks += 1;
      return said.id;
    },
  }));
  const before = appendMessages([], counted);
  const more = createMessages(100, 1, -1);
  expect(hasAnyId(before, more)).toBe(false);
  const first = looks;
  const next = appendMessages(before, more);
  expect([hasAnyId(before, more), hasAnyId(next, more)]).toEqual([false, true]);
  expect(hasAnyId(appendMessages(before, more), createMessages(101, 1, -1))).toBe(false);
  expect(looks).toBe(first);
});
