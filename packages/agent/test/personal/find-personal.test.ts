import { virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { findPersonal } from "../../src/personal/find-personal.ts";
import { personalKinds } from "../../src/personal/personal-kind.ts";
import { createStreamRedactor } from "../../src/personal/redact-stream.ts";

const all = new Set(personalKinds);
const findValues = (text: string): readonly string[] =>
  findPersonal(text, all).map(({ kind, start, end }) => `${kind} ${text.slice(start, end)}`);
const clean = (text: string): string => {
  let cleaned = "";
  let from = 0;
  for (const { kind, start, end } of findPersonal(text, all)) {
    cleaned += `${text.slice(from, start)}[${kind}]`;
    from = end;
  }
  return cleaned + text.slice(from);
};

test.each([
  ["Write to ann@example.com.", "email ann@example.com"],
  ["<mailto:o'brien+x@mail.example.co.uk>", "email o'brien+x@mail.example.co.uk"],
  ["'bob_2@example.org', jörg@müller.de", "email bob_2@example.org", "email jörg@müller.de"],
  ["card 4111 1111 1111 1111, 12/27", "card 4111 1111 1111 1111"],
  [
    "4111-1111-1111-1111 378282246310005 3782 822463 10005",
    "card 4111-1111-1111-1111",
    "card 378282246310005",
    "card 3782 822463 10005",
  ],
  ["IBAN DE89 3704 0044 0532 0130 00 please", "iban DE89 3704 0044 0532 0130 00"],
  [
    "GB29 NWBK 6016 1331 9268 19 and gb29nwbk60161331926819",
    "iban GB29 NWBK 6016 1331 9268 19",
    "iban gb29nwbk60161331926819",
  ],
  ["MT84 MALT 0110 0001 2345 MTLC AST0 01S.", "iban MT84 MALT 0110 0001 2345 MTLC AST0 01S"],
  ["call +49 30 901820 or +1 (555) 123-4567", "phone +49 30 901820", "phone +1 (555) 123-4567"],
  [
    "(020) 7946 0958, 030/1234567, 01 23 45 67 89, 07911123456",
    "phone (020) 7946 0958",
    "phone 030/1234567",
    "phone 01 23 45 67 89",
    "phone 07911123456",
  ],
  ["555-123-4567 or 1 555.123.4567", "phone 555-123-4567", "phone 1 555.123.4567"],
  ["from 192.168.0.17:8080 to ::1", "ip 192.168.0.17", "ip ::1"],
  [
    "2001:0db8:85a3::8a2e:0370:7334, fe80::1ff:fe23:4567:890a",
    "ip 2001:0db8:85a3::8a2e:0370:7334",
    "ip fe80::1ff:fe23:4567:890a",
  ],
])("personal data is found: %s", (text, ...expected) => {
  expect(findValues(text)).toEqual(expected);
});

test.each([
  "on 2024-01-15 at 10:30:45, from 05/06/2024 10:30 on",
  "version 1.2.3, 10.4.300.1 and 1.2.3.4.5",
  "order 4111 1111 1111 1112, 1234567890123456",
  "550e8400-e29b-41d4-a716-446655440000 00:1A:2B:3C:4D:5E",
  "a@b, @user, user@host, std::vector<int>, be::ad",
  "DE90 3704 1044 1532 2130 00",
  "pi is 0.12345678901, a million is 1000000, 1,234,567.89",
  "SHA 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
])("no personal data is found: %s", (text) => {
  expect(findValues(text)).toEqual([]);
});

test("findPersonal reports only the requested kinds", () => {
  const text = "ann@example.com 192.168.0.17 +49 30 901820";
  expect(findPersonal(text, new Set(["ip"])).map(({ kind }) => kind)).toEqual(["ip"]);
  expect(findPersonal(text, new Set())).toEqual([]);
});

/** Random texts of fragments of personal data and separators. */
function randomText(next: () => number): string {
  const parts = [
    "ann@example.com",
    "a@",
    "@b.de",
    "4111",
    "1111",
    "1111 1111",
    "DE89",
    "3704 0044 0532",
    "0130 00",
    "NWBK",
    "GB29",
    "6016 1331 9268 19",
    "+49",
    "(020)",
    "7946",
    "0958",
    "192.168",
    ".0.17",
    "::1",
    "fe80:",
    "word",
    "and",
    "THAT",
    ".",
    ",",
    "\n",
    " ",
    " ",
    " ",
    "  ",
    "\u00a0",
    "\t",
    "-",
    "/",
  ];
  let text = "";
  for (let count = Math.floor(next() * 30); count > 0; count--) text += parts[Math.floor(next() * parts.length)] ?? "";
  return text;
}

test("a text redacted in chunks equals the text redacted at once, and no match is emitted in part", () => {
  const { random } = virtualClock({ seed: 9 });
  for (let round = 0; round < 1_500; round++) {
    const text = randomText(random.next);
    const push = createStreamRedactor(clean);
    let observed = "";
    for (let index = 0; index < text.length; ) {
      const size = 1 + Math.floor(random.next() * 6);
      observed += push(text.slice(index, index + size));
      index += size;
    }
    const whole = clean(text);
    expect(whole.startsWith(observed), JSON.stringify({ text, observed, whole })).toBe(true);
    expect(observed + push("\nend\n")).toBe(`${whole}\nend`);
  }
});

test("plain words are emitted as soon as they are complete", () => {
  const push = createStreamRedactor(clean);
  expect(["It is ", "sunny in Os", "lo. Call 0", "20 7946 0958", " today", " or"].map(push)).toEqual([
    "It is",
    " sunny in",
    " Oslo. Call",
    " ",
    "",
    "[phone] today",
  ]);
});

test("findPersonal scans adversarial texts of 200,000 characters to their end", () => {
  for (const part of ["a@", "1 ", "4111 ", "DE89 ", "+1", "(0", "a.a.a.a.", "1:", ":", "0", "@", "NWBK "]) {
    const text = part.repeat(200_000 / part.length);
    // An address at the end is found only by a scan of the whole text.
    expect(findPersonal(`${text} ada@example.org`, all).at(-1)).toMatchObject({ end: text.length + 16 });
    const push = createStreamRedactor(clean);
    for (let index = 0; index < text.length; index += 1_000) push(text.slice(index, index + 1_000));
  }
});
