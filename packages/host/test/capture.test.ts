import { expect, test } from "vitest";
import { Capture } from "../src/capture.ts";

const text = "aé€😀".repeat(50);
const bytes = Buffer.from(text);

test("captured text is complete, wherever its chunks are cut", () => {
  for (let size = 1; size <= 11; size++) {
    const capture = new Capture(bytes.length);
    let streamed = "";
    for (let at = 0; at < bytes.length; at += size) streamed += capture.add(bytes.subarray(at, at + size));
    expect(streamed + capture.end()).toBe(text);
    expect(capture.getOutput()).toEqual({ text, droppedBytes: 0 });
  }
});

test("a long captured text keeps its start and end, counts the middle, and cuts no character", () => {
  for (let maxBytes = 0; maxBytes < bytes.length; maxBytes++) {
    for (const size of [1, 3, 64, bytes.length]) {
      const capture = new Capture(maxBytes);
      for (let at = 0; at < bytes.length; at += size) capture.add(bytes.subarray(at, at + size));
      const captured = capture.getOutput();
      const [head = "", tail = ""] = captured.text.split(/\n\[\.\.\. \d+ bytes omitted \.\.\.\]\n/);
      expect(text.startsWith(head)).toBe(true);
      expect(text.endsWith(tail)).toBe(true);
      const capturedBytes = Buffer.byteLength(head) + Buffer.byteLength(tail);
      expect(capturedBytes + captured.droppedBytes).toBe(bytes.length);
      expect(capturedBytes).toBeLessThanOrEqual(maxBytes);
      expect(capturedBytes).toBeGreaterThanOrEqual(maxBytes - 6);
      expect(captured.text).toContain(`[... ${captured.droppedBytes} bytes omitted ...]`);
    }
  }
});

test("captured bytes that are not UTF-8 become U+FFFD and are counted", () => {
  const capture = new Capture(4);
  expect(capture.add(Buffer.from([0x61, 0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x62]))).toContain("\ufffd");
  const { droppedBytes, text: capturedBytes } = capture.getOutput();
  expect(droppedBytes).toBeGreaterThanOrEqual(4);
  expect(capturedBytes.startsWith("a\ufffd")).toBe(true);
  expect(capturedBytes.endsWith("b")).toBe(true);
});

test("a stream that ends inside a character yields a single U+FFFD", () => {
  const capture = new Capture(100);
  expect(capture.add(Buffer.from([0x61, 0xe2, 0x82]))).toBe("a");
  expect(capture.end()).toBe("\ufffd");
});
