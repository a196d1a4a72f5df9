import fc from "fast-check";
import { expect, test } from "vitest";
import { countUtf8Bytes, fitsBytes, truncateText } from "../../src/tool/artifacts/truncate-text.ts";

const encoder = new TextEncoder();
const listBytes = (text: string): number => encoder.encode(text).length;
const anyText = fc.oneof(
  fc.string({ maxLength: 400 }),
  fc.string({ unit: "binary", maxLength: 400 }),
  fc.string({
    unit: fc.constantFrom("a", "ä", "€", "😀", "\ud83d", "\ude00", "\u{1F468}\u200d\u{1F469}"),
    maxLength: 400,
  }),
);
const note = (cut: number): string => `[… ${cut} cut]`;

test("the byte size of a text is its UTF-8 size", () => {
  fc.assert(
    fc.property(anyText, fc.nat(1_200), (text, limit) => {
      expect(countUtf8Bytes(text)).toBe(listBytes(text));
      expect(fitsBytes(text, limit)).toBe(listBytes(text) <= limit);
    }),
  );
});

test("a truncated text keeps head and tail within its limit, splits no code point, and states the number of removed bytes [T27]", () => {
  fc.assert(
    fc.property(anyText, fc.nat(600), (text, limit) => {
      const cut = truncateText(text, limit, note);
      if (listBytes(text) <= limit) {
        expect(cut).toBe(text);
        return;
      }
      expect(listBytes(cut)).toBeLessThanOrEqual(limit);
      const said = /\[… (\d+) cut\]/.exec(cut);
      if (limit < listBytes(note(listBytes(text)))) return;
      const [head, tail] = [cut.slice(0, said?.index), cut.slice((said?.index ?? 0) + (said?.[0].length ?? 0))];
      expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      expect(listBytes(head) + listBytes(tail) + Number(said?.[1])).toBe(listBytes(text));
      expect(Math.abs(listBytes(head) - listBytes(tail))).toBeLessThanOrEqual(6);
      const splits = (at: number): boolean => /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1));
      expect([splits(head.length), splits(text.length - tail.length)]).toEqual([false, false]);
    }),
    {
      examples: [
        ["😀".repeat(20), 40],
        ["\ud83d".repeat(40), 31],
        ["€".repeat(40), 29],
      ],
    },
  );
});
