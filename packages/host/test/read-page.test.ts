import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type PageOptions, resolveRealPathInside, runProcess, workspace } from "../src/index.ts";
import { getFailure } from "./support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-page-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const files = workspace(folder);

async function page(content: string | Uint8Array, options: PageOptions = {}) {
  writeFileSync(join(folder, "file"), content);
  const read = await files.readLines("file", options);
  if (read.kind === "binary") return { ...read, head: read.head.length };
  const { kind, totalBytes, ...rest } = read;
  return { ...rest, lines: rest.lines.map(({ text, cutBytes }) => (cutBytes === 0 ? text : [text, cutBytes])) };
}

test("a page has the requested lines, the start of the next page, and the number of lines", async () => {
  const whole = { next: undefined, isExact: true };
  expect(await page("")).toEqual({ ...whole, lines: [], totalLines: 0 });
  expect(await page("a")).toEqual({ ...whole, lines: ["a"], totalLines: 1 });
  expect(await page("a\n\nb\r\n")).toEqual({ ...whole, lines: ["a", "", "b"], totalLines: 3 });
  expect(await page("a\nb\nc\n", { from: 2, lines: 1 })).toEqual({
    lines: ["b"],
    next: 3,
    totalLines: undefined,
    isExact: true,
  });
  expect(await page("a\nb\nc\n", { from: 3, lines: 1 })).toMatchObject({
    lines: ["c"],
    next: undefined,
    totalLines: 3,
  });
  expect(await page("a\nb", { from: 9 })).toMatchObject({ lines: [], next: undefined, totalLines: 2 });
});

test("a page and its lines are bounded in bytes at whole characters, and the first line is always included", async () => {
  expect(await page("aaaa\nbbbb\ncccc\n", { maxBytes: 10 })).toMatchObject({ lines: ["aaaa", "bbbb"], next: 3 });
  expect(await page("aaaa\nb\n", { maxBytes: 1 })).toMatchObject({ lines: ["aaaa"], next: 2 });
  expect(await page("éééé\nx\n", { maxLineBytes: 5 })).toMatchObject({ lines: [["éé", 3], "x"], isExact: true });
  expect(await page("12345\r\nx", { maxLineBytes: 5 })).toMatchObject({ lines: ["12345", "x"] });
  expect(await page(`${"x".repeat(300_000)}\nend`, { maxLineBytes: 3 })).toMatchObject({
    lines: [["xxx", 299_997], "end"],
  });
});

test("page lines are equal wherever the read chunks begin", async () => {
  const lines = Array.from({ length: 30_000 }, (_, at) => `é${at}`);
  const text = lines.join("\n");
  for (const from of [1, 8_000, 17_000, 29_900]) {
    const read = await page(text, { from, lines: 100, maxBytes: 2 ** 20 });
    expect(read).toMatchObject({ lines: lines.slice(from - 1, from + 99) });
  }
});

test("a file with an early zero byte is binary, and other bytes that are not UTF-8 are reported", async () => {
  expect(await page(new Uint8Array([1, 0, 2]))).toEqual({ kind: "binary", head: 3, totalBytes: 3 });
  expect(await page(new Uint8Array([0x61, 0xff]))).toMatchObject({ lines: ["a\uFFFD"], isExact: false });
});

test("readLines refuses a folder, a missing file and a path outside like read, and a signal ends it", async () => {
  mkdirSync(join(folder, "sub"), { recursive: true });
  expect(await getFailure(files.readLines("sub"))).toMatchObject({ code: "io" });
  expect(await getFailure(files.readLines("none"))).toMatchObject({ code: "not_found" });
  expect(await getFailure(files.readLines("../x"))).toMatchObject({ code: "outside" });
  writeFileSync(join(folder, "file"), "a");
  expect(await getFailure(files.readLines("file", { signal: AbortSignal.abort() }))).toMatchObject({
    code: "cancelled",
  });
});

test("a filtered listing returns and counts only matching entries and still descends into all folders", async () => {
  for (const name of ["tree/a/one.ts", "tree/a/one.md", "tree/b/two.ts", "tree/three.ts"]) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), "");
  }
  const isTypeScript = (path: string) => path.endsWith(".ts");
  const all = await files.list({ path: "tree", filter: isTypeScript });
  expect(all.entries.map(({ path }) => path)).toEqual(["tree/a/one.ts", "tree/b/two.ts", "tree/three.ts"]);
  expect(all.truncated).toBe(false);
  const two = await files.list({ path: "tree", filter: isTypeScript, limit: 2 });
  expect([two.entries.length, two.truncated]).toEqual([2, true]);
});

test("all paths to one file resolve to one real path, and a path outside to none", async () => {
  writeFileSync(join(folder, "target"), "");
  symlinkSync("target", join(folder, "alias"));
  symlinkSync(".", join(folder, "here"));
  const places = await Promise.all(
    ["target", "./alias", "here/alias", join(folder, "target")].map((path) => resolveRealPathInside(folder, path)),
  );
  expect(new Set(places).size).toBe(1);
  expect(places[0]).toMatch(/target$/);
  expect(await resolveRealPathInside(folder, "here/new")).toBe(`${places[0]?.slice(0, -"target".length)}new`);
  expect(await resolveRealPathInside(folder, "../x")).toBeUndefined();
});

test("command output is delivered as raw bytes per stream, and a throwing listener stops the command", async () => {
  const seen = { stdout: [] as number[], stderr: [] as number[] };
  await runProcess("sh", ["-c", "printf '\\377\\000'; printf e >&2"], {
    maxBytes: 0,
    onBytes: (chunk, stream) => seen[stream].push(...chunk),
  });
  expect(seen).toEqual({ stdout: [255, 0], stderr: [101] });
  const stopped = runProcess("sh", ["-c", "echo; sleep 600"], {
    onBytes: () => {
      throw new Error("enough");
    },
  });
  expect(await getFailure(stopped)).toMatchObject({ message: "enough" });
});
