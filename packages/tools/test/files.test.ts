import { chmodSync, linkSync, mkdirSync, readdirSync, statSync, symlinkSync, truncateSync } from "node:fs";
import type { JsonObject } from "@statewright/core";
import { expect, test } from "vitest";
import { editFile, readFile, writeFile } from "../src/index.ts";
import { createTestFolder } from "./support/test-folder.ts";
import { runCall, startCalls } from "./support/tool-calls.ts";

const folder = createTestFolder();
const { root } = folder;
const read = (args: JsonObject) => runCall(readFile({ root }), args);
const write = (args: JsonObject) => runCall(writeFile({ root }), args);
const edit = (path: string, ...edits: readonly (readonly [string, string])[]) =>
  runCall(editFile({ root }), { path, edits: edits.map(([old, put]) => ({ old, new: put })) });
const createLines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `${from + at}\tline ${from + at}`).join("\n");

test("an unreadable file fails with `Cannot read <path>: <cause>` and without the root [S0.25, S2.25]", async () => {
  folder.put("a/file.txt", "x");
  folder.put("locked.txt", "x");
  chmodSync(folder.path("locked.txt"), 0);
  const cases = ["missing.txt", "a", "a/file.txt/deeper", "x".repeat(300)];
  if (process.getuid?.() !== 0) cases.push("locked.txt");
  for (const path of cases) {
    const { result, text } = await read({ path });
    expect(result).toMatchObject({ isError: true, error: { kind: "failed" } });
    expect(text.startsWith(`Cannot read ${path}: `)).toBe(true);
    expect(text).not.toContain(root);
  }
});

test("paths are checked after links are resolved: outside ones are refused by dots, absolute, through links, and for new files [T48]", async () => {
  mkdirSync(`${root}/../beside`, { recursive: true });
  folder.put("../beside/secret.txt", "secret");
  symlinkSync("../beside/secret.txt", folder.path("link.txt"));
  symlinkSync("../beside", folder.path("door"));
  for (const path of ["../beside/secret.txt", `${root}/../beside/secret.txt`, "link.txt", "door/secret.txt"]) {
    for (const came of [await read({ path }), await write({ path, content: "x" }), await edit(path, ["secret", "x"])]) {
      expect(came.result.error?.kind).toBe("denied");
      if (!path.startsWith(root)) expect(came.text).not.toContain(root);
    }
  }
  expect((await write({ path: "door/new.txt", content: "x" })).result.error?.kind).toBe("denied");
  expect(readdirSync(`${root}/../beside`)).toEqual(["secret.txt"]);
  expect(folder.text("../beside/secret.txt")).toBe("secret");
});

test("a page has 500 numbered lines and the next start, and the last page has no hint", async () => {
  folder.put("long.txt", Array.from({ length: 1_203 }, (_, at) => `line ${at + 1}\n`).join(""));
  const first = await read({ path: "long.txt" });
  expect(first.text).toMatch(
    /^1\tline 1\n[\s\S]*\n500\tline 500\n\[Lines 1 to 500 of \d+ bytes\. Continue with offset 501\.\]$/,
  );
  expect((await read({ path: "long.txt", offset: 1_001 })).text).toBe(createLines(1_001, 1_203));
  expect((await read({ path: "long.txt", offset: 7, limit: 3 })).text.split("\n[")[0]).toBe(createLines(7, 9));
  const behind = await read({ path: "long.txt", offset: 2_000 });
  expect(behind).toMatchObject({ isError: true, text: "Cannot read long.txt from line 2000: it has 1203 lines." });
  folder.put("empty.txt", "");
  expect((await read({ path: "empty.txt" })).text).toBe("[empty.txt is empty.]");
});

test("a long line is cut, carriage returns at line ends are hidden, and bytes that are not UTF-8 are reported", async () => {
  folder.put("odd.txt", Buffer.concat([Buffer.from(`one\r\n${"é".repeat(5_000)}\nthr`), Buffer.from([0xff])]));
  const { text } = await read({ path: "odd.txt" });
  expect(text).toBe(
    `1\tone\n2\t${"é".repeat(1_000)} [… 8000 more bytes of this line]\n3\tthr\uFFFD\n[Bytes that are not UTF-8 are shown as \uFFFD.]`,
  );
});

test("a page is bounded in bytes for lines of any length", async () => {
  folder.put("wide.txt", `${"x".repeat(1_900)}\n`.repeat(400));
  const { text, answer } = await read({ path: "wide.txt" });
  expect(Buffer.byteLength(text)).toBeLessThan(50 * 1024);
  expect(text).toMatch(/Continue with offset 22\.\]$/);
  expect(answer.content).toHaveLength(1);
});

test("an image file is an image block, and a large one or another binary file is reported as such", async () => {
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
  folder.put("dot.png", png);
  expect((await read({ path: "dot.png" })).answer.content).toEqual([
    { type: "text", text: "dot.png: image/png, 16 bytes" },
    { type: "image", mimeType: "image/png", data: png.toString("base64") },
  ]);
  folder.put("large.png", Buffer.concat([png, Buffer.alloc(2 ** 20)]));
  expect((await read({ path: "large.png" })).text).toContain("too large to show");
  folder.put("all.png", Buffer.concat([png, Buffer.alloc(2 ** 20 - png.length)]));
  expect((await read({ path: "all.png" })).answer.content.map(({ type }) => type)).toEqual(["text", "image"]);
  folder.put("program", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0]));
  expect((await read({ path: "program" })).text).toBe(
    "[program is a binary file of 6 bytes and cannot be read as text.]",
  );
});

test("write_file creates parent folders, replaces atomically, keeps the mode, and leaves no other file", async () => {
  const made = await write({ path: "a/b/c.txt", content: "é\r\n" });
  expect(made).toMatchObject({ isError: false, text: "Created a/b/c.txt: 4 bytes." });
  chmodSync(folder.path("a/b/c.txt"), 0o640);
  linkSync(folder.path("a/b/c.txt"), folder.path("old"));
  expect((await write({ path: "a/b/c.txt", content: "new" })).text).toBe("Replaced a/b/c.txt: 3 bytes.");
  expect(folder.text("a/b/c.txt")).toBe("new");
  // The old file is not overwritten: a process that has it open still reads the old content.
  expect(folder.text("old")).toBe("é\r\n");
  expect(statSync(folder.path("a/b/c.txt")).mode & 0o777).toBe(0o640);
  expect(readdirSync(folder.path("a/b"))).toEqual(["c.txt"]);
});

test("edit_file applies all edits or none, each against the original file", async () => {
  folder.put("code.ts", "const one = 1;\nconst two = 2;\nconst one_and_two = one + two;\n");
  const edited = await edit("code.ts", ["const two = 2;", "const two = 22;"], ["const one = 1;", "const two = 2;"]);
  expect(edited).toMatchObject({ isError: false, text: "Edited code.ts: 2 edits." });
  const after = "const two = 2;\nconst two = 22;\nconst one_and_two = one + two;\n";
  expect(folder.text("code.ts")).toBe(after);
  expect(edited.result.details).toMatchObject({ changed: true, diff: expect.stringContaining("-const one = 1;\n") });

  const refused = [
    await edit("code.ts", ["one_and_two", "both"], ["const", "let"]),
    await edit("code.ts", ["one_and_two", "both"], ["three", "3"]),
    await edit("code.ts", ["one_and_two", "both"], ["and_two =", "x"]),
    await edit("code.ts", ["one_and_two", "one_and_two"]),
  ];
  expect(refused.map(({ isError }) => isError)).toEqual([true, true, true, true]);
  expect(refused.map(({ text }) => text)).toEqual([
    expect.stringMatching(
      /^The old text of edit 2 occurs in the file 3 times, in lines 1, 2, 3\..* Nothing was changed\.$/,
    ),
    expect.stringMatching(/^The old text of edit 2 does not occur in the file\..* Nothing was changed\.$/),
    "Two edits overlap. Combine them into one. Nothing was changed.",
    "The old text equals the new text. Nothing was changed.",
  ]);
  expect(folder.text("code.ts")).toBe(after);
});

test("edit_file keeps line ends of each kind, the byte order mark and the mode", async () => {
  folder.put("dos.txt", "\uFEFFone\r\ntwo\r\nthree\r\n");
  chmodSync(folder.path("dos.txt"), 0o755);
  await edit("dos.txt", ["one\ntwo", "1\n1.5\n2"], ["three", "3\r\n4"]);
  expect(folder.text("dos.txt")).toBe("\uFEFF1\r\n1.5\r\n2\r\n3\r\n4\r\n");
  expect(statSync(folder.path("dos.txt")).mode & 0o777).toBe(0o755);
  folder.put("mixed.txt", "a\r\nb\nc\r\nd\n");
  await edit("mixed.txt", ["b\n", "b\nbb\n"], ["c\n", "c\ncc\n"]);
  expect(folder.text("mixed.txt")).toBe("a\r\nb\nbb\nc\r\ncc\r\nd\n");
});

test("a repeated edit_file call changes nothing, also when the new text contains the old", async () => {
  folder.put("list.txt", "first\nlast\n");
  for (const expected of [
    "Edited list.txt: 1 edit.",
    "Nothing was changed: list.txt already contains the new text and not the old text, as after these edits. If you did not make them before, read the file.",
  ])
    expect((await edit("list.txt", ["first\n", "first\nsecond\n"])).text).toBe(expected);
  expect(folder.text("list.txt")).toBe("first\nsecond\nlast\n");
});

test("edit_file refuses binary files and files that are too large", async () => {
  folder.put("bin", Buffer.from([1, 0, 2]));
  expect((await edit("bin", ["a", "b"])).text).toBe("Cannot edit bin: it is not UTF-8 text.");
  folder.put("huge", "a");
  truncateSync(folder.path("huge"), 9 * 2 ** 20);
  expect((await edit("huge", ["a", "b"])).isError).toBe(true);
});

test("parallel edits of one file are all kept, whatever path leads to the file [T49]", async () => {
  folder.put("one.txt", Array.from({ length: 20 }, (_, at) => `<${at}>\n`).join(""));
  symlinkSync("one.txt", folder.path("alias.txt"));
  symlinkSync(".", folder.path("here"));
  const paths = ["one.txt", "alias.txt", "here/one.txt", `${root}/one.txt`, "./here/../one.txt"];
  const asked = Array.from({ length: 20 }, (_, at) => ({
    name: "edit_file",
    args: { path: paths[at % 4] ?? "", edits: [{ old: `<${at}>`, new: `[${at}]` }] },
  }));
  const answers = await startCalls([editFile({ root })], asked).answers();
  expect(answers.filter(({ isError }) => isError)).toEqual([]);
  expect(folder.text("one.txt")).toBe(Array.from({ length: 20 }, (_, at) => `[${at}]\n`).join(""));
  const { execution } = editFile({ root }).spec;
  const locks = await Promise.all(paths.slice(0, 4).map((path) => execution.lock?.({ path } as never)));
  expect(new Set(locks.map((lock) => JSON.stringify(lock))).size).toBe(1);
  expect(await writeFile({ root }).spec.execution.lock?.({ path: "alias.txt" } as never)).toEqual(locks[0]);
});

test("a page far into a large file is found with progress updates, and a cancel ends the search", async () => {
  folder.put("sparse.txt", Buffer.alloc(64 * 1024, "x\n"));
  truncateSync(folder.path("sparse.txt"), 8 * 2 ** 30);
  const live = startCalls(
    [readFile({ root })],
    [{ name: "read_file", args: { path: "sparse.txt", offset: 10_000_000 } }],
  );
  await live.shows("bytes scanned");
  live.handle.cancel();
  expect((await live.results())[0]?.error?.kind).toBe("cancelled");
  expect(live.events.find(({ type }) => type === "tool.update")).toMatchObject({
    partial: { details: { scannedBytes: expect.any(Number) } },
  });
});
