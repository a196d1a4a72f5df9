import { expect, test } from "vitest";
import { OutputLog } from "../src/output-log.ts";

test("characters that come in parts stay whole, whatever the other output writes between them", () => {
  const log = new OutputLog(2 ** 20);
  const [first = 0, ...rest] = Buffer.from("é");
  log.add(Buffer.from([0x61, first]), "stdout");
  log.add(Buffer.from("[err]"), "stderr");
  log.add(Buffer.from([...rest, 0x62]), "stdout");
  log.end();
  expect(log.body().toString()).toBe("a[err]éb");
  expect([log.totalBytes, log.isBinary]).toEqual([9, false]);
});

test("what is never finished comes at the end, as it is", () => {
  const log = new OutputLog(2 ** 20);
  log.add(Buffer.from([0x61, 0xf0, 0x9f]), "stdout");
  expect([...log.body()]).toEqual([0x61]);
  log.end();
  expect([...log.body()]).toEqual([0x61, 0xf0, 0x9f]);
});

test("the end of a text begins with a whole line where there is one, and with a whole character else", () => {
  const log = new OutputLog(2 ** 20);
  log.add(Buffer.from("one\ntwo\nthree\n"), "stdout");
  expect(log.tail(100)).toBe("one\ntwo\nthree\n");
  expect(log.tail(8)).toBe("three\n");
  expect(log.tail(3)).toBe("ee\n");
  const wide = new OutputLog(2 ** 20);
  wide.add(Buffer.from("é".repeat(10)), "stdout");
  expect(wide.tail(5)).toBe("éé");
});

test("beginning and end are kept of a long output, however it is cut into chunks", () => {
  for (const chunkBytes of [1_000, 65_536, 1_000_000]) {
    const log = new OutputLog(256 * 1024);
    const all = Buffer.from(Array.from({ length: 300_000 }, (_, at) => `${at}\n`).join(""));
    for (let at = 0; at < all.length; at += chunkBytes) log.add(all.subarray(at, at + chunkBytes), "stdout");
    log.end();
    const body = log.body().toString();
    const [, dropped = ""] = /\n\[… (\d+) bytes are not kept …\]\n/.exec(body) ?? [];
    expect(body.startsWith("0\n1\n2\n")).toBe(true);
    expect(body.endsWith("299998\n299999\n")).toBe(true);
    const words = Buffer.byteLength(`\n[… ${dropped} bytes are not kept …]\n`);
    expect(log.body().length - words + Number(dropped)).toBe(all.length);
    expect(log.body().length).toBeLessThan(256 * 1024 + 65_536 + words);
    expect(log.tail(20)).toBe("299998\n299999\n");
  }
});
