/** Blocks of messages as parts of the AI SDK, and the table of them on the docs page. */
import { readFileSync } from "node:fs";
import type { ContentBlock, UserMessage } from "@statewright/core";
import { expect, test } from "vitest";
import { listPieces, listUserParts, toToolOutput, toUserBlock } from "../../src/ai-sdk/ui-blocks.ts";
import { readContentParts } from "../../src/ai-sdk/ui-request.ts";

const ref = { handle: "a1", name: "report.txt", mimeType: "text/plain", bytes: 9 };

/** Checks a block of a user message both ways. */
function checkUserBlock(block: UserMessage["content"][number], part: object): void {
  const parts = listUserParts({ content: [block] });
  expect(parts).toEqual([part]);
  expect(parts.map(toUserBlock)).toEqual([block]);
}

function checkOutput(content: readonly ContentBlock[], output: unknown): void {
  expect(toToolOutput(content)).toEqual(output);
}

function checkIgnored(part: { readonly type: string }): void {
  expect(readContentParts({ id: "u1", role: "user", parts: [part] })).toEqual([]);
}

const rows: Readonly<Record<string, () => void>> = {
  text: () => {
    checkUserBlock({ type: "text", text: "a" }, { type: "text", text: "a" });
    const content = [{ type: "text", text: "a" } as const, { type: "text", text: "b" } as const];
    expect(listPieces(content)).toEqual([{ kind: "text", text: "ab" }]);
  },
  reasoning: () => {
    expect(listPieces([{ type: "reasoning", text: "r" }])).toEqual([{ kind: "reasoning", text: "r" }]);
    checkIgnored({ type: "reasoning" });
  },
  call: () => {
    const input = { value: { a: 1 }, isInvalid: false };
    const call = { type: "call", id: "c1", name: "look", args: { a: 1 } } as const;
    expect(listPieces([call])).toEqual([{ kind: "call", callId: "c1", name: "look", input }]);
    checkIgnored({ type: "tool-look" });
  },
  "call with invalid arguments": () => {
    const call = { type: "call", id: "c1", name: "look", args: {}, raw: "{a" } as const;
    const input = { value: "{a", isInvalid: true };
    expect(listPieces([call])).toEqual([{ kind: "call", callId: "c1", name: "look", input }]);
  },
  "image, as data": () =>
    checkUserBlock(
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" },
    ),
  "image, by URL": () =>
    checkUserBlock(
      { type: "image", mimeType: "image/png", url: "https://example.org/a.png" },
      { type: "file", mediaType: "image/png", url: "https://example.org/a.png" },
    ),
  "file, as data": () => {
    checkUserBlock(
      { type: "file", mimeType: "text/plain", data: "AAAA", name: "a.txt" },
      { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,AAAA", filename: "a.txt" },
    );
    const file = { type: "file", mimeType: "text/plain", data: "AAAA" } as const;
    const url = "data:text/plain;base64,AAAA";
    expect(listPieces([file])).toEqual([{ kind: "file", mediaType: "text/plain", url }]);
  },
  "file, by URL": () =>
    checkUserBlock(
      { type: "file", mimeType: "application/pdf", url: "https://example.org/a.pdf" },
      { type: "file", mediaType: "application/pdf", url: "https://example.org/a.pdf" },
    ),
  "file at a provider": () => {
    checkUserBlock(
      { type: "file", mimeType: "application/pdf", uploaded: { openai: "file-1" } },
      { type: "file", mediaType: "application/pdf", url: "", providerReference: { openai: "file-1" } },
    );
    expect(listPieces([{ type: "file", mimeType: "text/plain", uploaded: { openai: "file-1" } }])).toEqual([]);
  },
  "text of a tool result": () => checkOutput([{ type: "text", text: "dry" }], "dry"),
  "json value of a tool result": () => checkOutput([{ type: "json", value: { dry: true } }], { dry: true }),
  "several blocks of a tool result": () =>
    checkOutput(
      [
        { type: "text", text: "a" },
        { type: "json", value: 1 },
        { type: "image", mimeType: "image/png", data: "AAAA" },
        { type: "file", mimeType: "text/plain", url: "https://example.org/a", name: "a" },
      ],
      [
        { type: "text", text: "a" },
        { type: "json", value: 1 },
        { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" },
        { type: "file", mediaType: "text/plain", url: "https://example.org/a", filename: "a" },
      ],
    ),
  "artifact of a tool result": () =>
    checkOutput(
      [{ type: "artifact", ref, preview: "first line" }],
      [{ type: "artifact", ...ref, preview: "first line" }],
    ),
  "other parts": () => {
    for (const type of ["data-place", "source-url", "source-document", "custom", "step-start"]) checkIgnored({ type });
  },
};

test("each kind of block maps to the page and back as the table of the docs page says [V39]", () => {
  const page = readFileSync(new URL("../../../../docs/ai-sdk-ui.md", import.meta.url), "utf8");
  const section = page.slice(page.indexOf("## Content of messages"), page.indexOf("## Edit and regenerate"));
  const names = [...section.matchAll(/^\| ([^|]+) \|/gm)].map((match) => match[1] ?? "").slice(1);
  expect(names.filter((name) => name !== "---")).toEqual(Object.keys(rows));
  for (const check of Object.values(rows)) check();
});

test("a URL that is neither base64 data nor http is no block", () => {
  for (const url of ["file:///etc/passwd", "data:text/plain,a", "javascript:1", "ftp://a/b", "data:;base64,%", "x"])
    expect([url, toUserBlock({ type: "file", mediaType: "text/plain", url })]).toEqual([url, undefined]);
});

test("the transport of the docs page is that of the example page", () => {
  const page = readFileSync(new URL("../../../../docs/ai-sdk-ui.md", import.meta.url), "utf8");
  const folder = new URL("../../../../apps/examples/pages/chat/src/", import.meta.url);
  const [, transport = ""] = readFileSync(new URL("stoppable-transport.ts", folder), "utf8").split('from "ai";\n\n');
  expect(page).toContain(transport);
});
