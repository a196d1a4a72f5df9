/** Encoded event streams: one line of JSON per frame, and names that cannot end a line. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createSseEncoder } from "../../src/http/sse-encoder.ts";

/** Parses event streams as the HTML standard says, and also breaks lines where Unicode does. */
function parseStream(text: string): { id: string | undefined; event: string | undefined; data: string }[] {
  const frames: { id: string | undefined; event: string | undefined; data: string }[] = [];
  let id: string | undefined;
  let event: string | undefined;
  let data: string[] = [];
  for (const line of text.split(/\r\n|[\n\r\v\f\p{Zl}\p{Zp}\u0085]/u)) {
    if (line === "") {
      if (data.length > 0) frames.push({ id, event, data: data.join("\n") });
      id = event = undefined;
      data = [];
    } else if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (!line.startsWith(":")) throw new Error(`unknown line ${JSON.stringify(line)}`);
  }
  return frames;
}

const anyString = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({
    unit: fc.constantFrom("\n", "\r", "\u2028", "\u2029", "\u0085", "\v", "\0", ":", "d", "\ud800", "\udc00"),
  }),
);
const name = fc.stringMatching(/^[A-Za-z0-9_.:|~/-]+$/);

test("a frame with any string is one line of JSON and reads as the same value, also where readers break lines at U+2028 [V140]", () => {
  const { encode } = createSseEncoder();
  fc.assert(
    fc.property(anyString, anyString, name, name, (key, value, event, id) => {
      const data = { [key]: value };
      const text = encode({ id, event, data });
      expect(text.split("\n")).toHaveLength(5);
      const [frame, ...others] = parseStream(text);
      expect(others).toEqual([]);
      expect({ id: frame?.id, event: frame?.event }).toEqual({ id, event });
      expect(JSON.stringify(JSON.parse(frame?.data ?? ""))).toBe(JSON.stringify(data));
    }),
  );
});

test("an event name or id with any other character is refused, so that no value can begin a line of its own [V140]", () => {
  const { encode } = createSseEncoder();
  fc.assert(
    fc.property(anyString, fc.constantFrom("id", "event"), (text, field) => {
      fc.pre(!/^[A-Za-z0-9_.:|~/-]+$/.test(text));
      expect(() => encode({ [field]: text, data: null })).toThrow(TypeError);
    }),
  );
});

test("a comment of any text is a single line without a blank line after it [V37, V140]", () => {
  const { encode } = createSseEncoder();
  fc.assert(
    fc.property(anyString, (comment) => {
      const text = encode({ comment });
      expect(text).toMatch(/^:[^\n\r]*\n$/);
      expect(parseStream(`${text}${encode({ event: "x", data: 1 })}`)).toEqual([
        { id: undefined, event: "x", data: "1" },
      ]);
    }),
  );
});

test("literal text such as [DONE] is a frame of one line, whatever it holds [V140]", () => {
  const { encode } = createSseEncoder();
  expect(encode({ text: "[DONE]" })).toBe("data: [DONE]\n\n");
  fc.assert(
    fc.property(anyString, (text) => {
      expect(encode({ text })).toMatch(/^data: [^\n\r]*\n\n$/);
    }),
  );
});

test("data that is not JSON is refused instead of sent as an empty frame [V140]", () => {
  const { encode } = createSseEncoder();
  expect(() => encode({ data: undefined })).toThrow("expected data as JSON, got undefined");
  expect(encode({ data: null })).toBe("data: null\n\n");
});
