import { expect, test } from "vitest";
import { OutputLog } from "../src/output-log.ts";

test("characters split across output chunks stay whole, whatever the other stream writes between", () => {
  const log = new OutputLog(2 ** 20);
  const [first = 0, ...rest] = Buffer.from("é");
  log.add(Buffer.from([0x61, first]), "stdout");
  log.add(Buffer.from("[err]"), "stderr");
  log.add(Buffer.from([...rest, 0x62]), "stdout");
  log.end();
  expect(log.toBuffer().toString()).toBe("a[err]éb");
  expect([log.totalBytes, log.isBinary]).toEqual([9, false]);
});

test("an unfinished character is appended unchanged at the end of the output", () => {
  const log = new OutputLog(2 ** 20);
  log.add(Buffer.from([0x61, 0xf0, 0x9f]), "stdout");
  expect([...log.toBuffer()]).toEqual([0x61]);
  log.end();
  expect([...log.toBuffer()]).toEqual([0x61, 0xf0, 0x9f]);
});

test("the tail of an output starts at a whole line where possible, or else at a whole character", () => {
  const log = new OutputLog(2 ** 20);
  log.add(Buffer.from("one\ntwo\nthree\n"), "stdout");
  expect(log.readTail(100)).toBe("one\ntwo\nthree\n");
  expect(log.readTail(8)).toBe("three\n");
  expect(log.readTail(3)).toBe("ee\n");
  const wide = new OutputLog(2 ** 20);
  wide.add(Buffer.from("é".repeat(10)), "stdout");
  expect(wide.readTail(5)).toBe("éé");
});

test("a long output keeps its start and end, in any chunks", () => {
  for (const chunkBytes of [1_000, 65_536, 1_000_000]) {
    const log = new OutputLog(256 * 1024);
    const all = Buffer.from(Array.from({ length: 300_000 }, (_, at) => `${at}\n`).join(""));
    for (let at = 0; at < all.length; at += chunkBytes) log.add(all.subarray(at, at + chunkBytes), "stdout");
    log.end();
    const body = log.toBuffer().toString();
    const [, dropped = ""] = /\n\[… (\d+) bytes were dropped …\]\n/.exec(body) ?? [];
    expect(body.startsWith("0\n1\n2\n")).toBe(true);
    expect(body.endsWith("299998\n299999\n")).toBe(true);
    const words = Buffer.byteLength(`\n[… ${dropped} bytes were dropped …]\n`);
    expect(log.toBuffer().length - words + Number(dropped)).toBe(all.length);
    expect(log.toBuffer().length).toBeLessThan(256 * 1024 + 65_536 + words);
    expect(log.readTail(20)).toBe("299998\n299999\n");
  }
});
