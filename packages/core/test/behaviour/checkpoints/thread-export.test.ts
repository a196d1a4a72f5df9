/** An imported thread export is checked completely before the store writes any row. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getState,
  memoryStore,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { copyThread, exportThread, importThread, pruneThread, streamThreadExport } from "../../../src/inspect.ts";

const Chat = defineState({ said: channel.list(z.string()), last: z.string().default("") });
const chat = defineGraph({ name: "chat", version: 3, state: Chat, interrupts: { more: z.boolean() } })
  .nodes({
    say: (state) => ({ said: [`said ${state.said.length}`] }),
    ask: async (_state, { interrupt, step }) => {
      await step("noted", async () => "noted");
      return { last: (await interrupt("more")) ? "more" : "enough" };
    },
  })
  .edges({ [START]: "say", say: "ask", ask: END });

async function createWaitingThread(thread: string): Promise<Store> {
  const store = memoryStore();
  await run(chat, { store, thread, input: { said: ["hello"] }, metadata: { of: "test" } }).result;
  return store;
}

/** Changes one row of an export and recomputes the end record, like a deliberate forgery. */
async function forged(text: string, work: (rows: Record<string, unknown>[]) => void): Promise<string> {
  const rows = text
    .trimEnd()
    .split("\n")
    .slice(0, -1)
    .map((row) => JSON.parse(row) as Record<string, unknown>);
  work(rows);
  return sealed(rows.map((row) => JSON.stringify(row)));
}

async function sealed(lines: readonly string[]): Promise<string> {
  const body = `${lines.join("\n")}\n`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)));
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${body}${JSON.stringify({ row: "end", rows: lines.length, sha256 })}\n`;
}

type Row = Record<string, Record<string, unknown> & { row?: Record<string, unknown> }>;

function find(rows: Record<string, unknown>[], kind: string): Row {
  return rows.find((row) => row["row"] === kind) as Row;
}

describe("thread export", () => {
  test("a thread export contains its format, version, thread, graph and end", async () => {
    const store = await createWaitingThread("t");
    const lines = (await exportThread(store, "t"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines[0]).toMatchObject({
      format: "statewright.thread",
      version: 1,
      id: "t",
      by: { graph: "chat", version: 3, shape: expect.any(String) },
    });
    expect(lines.at(-1)).toEqual({
      row: "end",
      rows: lines.length - 1,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    await expect(exportThread(store, "nobody")).rejects.toMatchObject({ code: "unknown_thread" });
  });

  test("a thread export with any byte changed is refused and nothing is imported [E46]", async () => {
    const text = await exportThread(await createWaitingThread("t"), "t");
    const store = memoryStore();
    for (let at = 0; at < text.length; at += 7) {
      const changed = text.slice(0, at) + (text[at] === "x" ? "y" : "x") + text.slice(at + 1);
      await expect(importThread(store, changed), `byte ${at}`).rejects.toMatchObject({
        code: expect.stringMatching(/^(invalid_export|store_newer)$/),
      });
    }
    for (const cut of [0, 1, 100, text.length - 1, text.length - 50])
      await expect(importThread(store, text.slice(0, cut))).rejects.toMatchObject({ code: "invalid_export" });
    expect(await store.threads()).toEqual([]);
    expect(await importThread(store, text)).toBe("t");
  });

  test("a large artifact is exported in chunks between turns of the event loop, with few bytes per read [FX77]", async () => {
    const store = await createWaitingThread("t");
    const bytes = 3_000_000;
    const image = await store.exportThread("t");
    const body = Uint8Array.from({ length: bytes }, (_, index) => (index * 31) % 251);
    const key = [...new Uint8Array(await crypto.subtle.digest("SHA-256", body))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
    const row = {
      ...{ key, name: "big", mimeType: "application/octet-stream", bytes, text: false, redaction: "none" as const },
      ...{ tool: "make", run: image.run ?? "", branch: "main", step: 1, task: "say", call: "c1", at: 1 },
    };
    const large = memoryStore();
    await large.importThread({ ...image, artifacts: [{ row, body }] });
    const reads: number[] = [];
    const counted: Store = {
      ...large,
      artifacts: {
        ...large.artifacts,
        read: async (...args) => {
          const found = await large.artifacts.read(...args);
          reads.push(found?.length ?? 0);
          return found;
        },
      },
    };
    let turns = 0;
    let isOpen = true;
    const countTurns = (): void => {
      turns += 1;
      if (isOpen) setImmediate(countTurns);
    };
    setImmediate(countTurns);
    const chunks: string[] = [];
    for await (const chunk of streamThreadExport(counted, "t")) chunks.push(chunk);
    isOpen = false;
    expect(reads.reduce((sum, size) => sum + size, 0)).toBe(bytes);
    expect(Math.max(...reads)).toBeLessThanOrEqual(200_000);
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(600_000);
    expect(turns).toBeGreaterThanOrEqual(chunks.length - 1);
    expect(chunks.join("")).toBe(await exportThread(large, "t"));

    const copy = memoryStore();
    expect(await importThread(copy, chunks)).toBe("t");
    expect(await copy.artifacts.read("t", key)).toEqual(body);
  });

  test("a thread whose text exceeds the longest text is refused with streamThreadExport as the fix [FX77]", async () => {
    const store = await createWaitingThread("t");
    const { length } = await exportThread(store, "t");
    await expect(exportThread(store, "t", { maxCharacters: length - 1 })).rejects.toMatchObject({
      code: "unencodable_value",
      message: expect.stringContaining("Use streamThreadExport"),
    });
    expect(await exportThread(store, "t", { maxCharacters: length })).toHaveLength(length);
    await expect(exportThread(store, "t", { maxCharacters: 0 })).rejects.toMatchObject({ code: "invalid_option" });
  });

  test("an export in chunks of one character is imported, and one above maxBytes is refused [FX77]", async () => {
    const text = await exportThread(await createWaitingThread("t"), "t");
    const store = memoryStore();
    expect(await importThread(store, text)).toBe("t");
    expect(await importThread(store, [...text], { as: "u" })).toBe("u");
    async function* toChunks() {
      yield text.slice(0, 100);
      yield text.slice(100);
    }
    expect(await importThread(store, toChunks(), { as: "v" })).toBe("v");
    await expect(importThread(store, [...text], { maxBytes: text.length - 1 })).rejects.toMatchObject({
      code: "invalid_export",
    });
  });

  test("a thread export in a newer format is refused as newer", async () => {
    const text = await exportThread(await createWaitingThread("t"), "t");
    const newer = await forged(text, (rows) => {
      (rows[0] as { version: number }).version = 2;
      (rows[0] as { novelty?: number }).novelty = 1;
    });
    await expect(importThread(memoryStore(), newer)).rejects.toMatchObject({ code: "store_newer" });
  });

  const hostile: Readonly<Record<string, (rows: Record<string, unknown>[]) => void>> = {
    "an unknown field": (rows) => {
      find(rows, "run")["run"]!["admin"] = true;
    },
    "a field __proto__": (rows) => {
      Object.defineProperty(find(rows, "run")["run"], "__proto__", { value: { admin: true }, enumerable: true });
    },
    "an unknown kind of row": (rows) => {
      rows.push({ row: "trigger", trigger: {} });
    },
    "a row of two kinds": (rows) => {
      find(rows, "run")["namespace"] = {};
    },
    "a thread id outside the grammar": (rows) => {
      (rows[0] as { id: string }).id = "../t";
    },
    "a namespace name outside the grammar": (rows) => {
      find(rows, "namespace")["namespace"]!["name"] = "ma in";
    },
    "a run id outside the grammar": (rows) => {
      find(rows, "run")["run"]!["id"] = "r'1";
    },
    "a reserved name": (rows) => {
      find(rows, "namespace")["namespace"]!["name"] = "__proto__";
    },
    "an unknown status": (rows) => {
      find(rows, "run")["run"]!["status"] = "crashed";
    },
    "a checkpoint that does not follow": (rows) => {
      find(rows, "checkpoint")["checkpoint"]!.row!["parent"] = 9;
    },
    "a repeated checkpoint": (rows) => {
      rows.push(find(rows, "checkpoint"));
    },
    "a checkpoint above the last": (rows) => {
      (rows[0] as { checkpoint: number }).checkpoint = 0;
    },
    "a huge checkpoint id": (rows) => {
      (rows[0] as { checkpoint: number }).checkpoint = 2 ** 40;
      const checkpoints = rows.filter((row) => row["row"] === "checkpoint") as Row[];
      checkpoints.at(-1)!["checkpoint"]!.row!["id"] = 2 ** 30;
    },
    "a namespace with an unknown parent": (rows) => {
      find(rows, "namespace")["namespace"]!["from"] = 77;
    },
    "a repeated interrupt": (rows) => {
      rows.splice(rows.indexOf(find(rows, "interrupt")), 0, find(rows, "interrupt"));
    },
    "an effect of an unknown class": (rows) => {
      find(rows, "effect")["effect"]!["effect"] = "always";
    },
    "a lone surrogate in a name": (rows) => {
      find(rows, "effect")["effect"]!["key"] = "\ud800";
    },
    "an invalid number": (rows) => {
      find(rows, "effect")["effect"]!["startedAt"] = "1";
    },
    "a fraction for a step": (rows) => {
      find(rows, "effect")["effect"]!["step"] = 0.5;
    },
    "rows before any namespace": (rows) => {
      rows.splice(1, 0, find(rows, "effect"));
    },
    "a run on an unknown branch": (rows) => {
      find(rows, "run")["run"]!["branch"] = "other";
    },
    "an unknown newest run": (rows) => {
      (rows[0] as { run: string }).run = "r9";
    },
    "a run of another tenant": (rows) => {
      find(rows, "run")["run"]!["tenant"] = "other";
    },
    "a tenant that its runs do not have": (rows) => {
      (rows[0] as { tenant: string }).tenant = "other";
    },
    "metadata that is no object": (rows) => {
      (rows[0] as { metadata: unknown }).metadata = ["x"];
    },
    "checkpoints without a graph": (rows) => {
      delete rows[0]?.["by"];
    },
    "an unknown head branch": (rows) => {
      (rows[0] as { headBranch: string }).headBranch = "other";
    },
    "an event after the last number": (rows) => {
      rows.push({ row: "event", event: { seq: 10 ** 9, branch: "main", at: 1, text: "1" } });
    },
  };

  test.each(Object.keys(hostile))(
    "a thread export with %s is refused, also under a correct hash [E46]",
    async (what) => {
      const text = await exportThread(await createWaitingThread("t"), "t");
      const store = memoryStore();
      const bad = await forged(text, hostile[what] ?? (() => undefined));
      await expect(importThread(store, bad)).rejects.toMatchObject({
        code: expect.stringMatching(/^(invalid_export|invalid_id)$/),
      });
      expect(await store.threads()).toEqual([]);
    },
  );

  test("a thread export that is too long, too deep or too large is refused (rule R15)", async () => {
    const text = await exportThread(await createWaitingThread("t"), "t");
    const store = memoryStore();
    await expect(importThread(store, text, { maxBytes: 100 })).rejects.toMatchObject({ code: "invalid_export" });
    const rows = text.trimEnd().split("\n").slice(0, -1);
    const run = (metadata: string): string => {
      const row = rows.find((each) => each.startsWith('{"row":"run"')) ?? "";
      return row.replace('{"of":"test"}', metadata);
    };
    for (const metadata of [
      `{"a":${"[".repeat(100)}${"]".repeat(100)}}`,
      `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
      `{"a":[${"0,".repeat(200_000)}0]}`,
    ]) {
      const bad = await sealed([rows[0] ?? "", run(metadata), ...rows.slice(2)]);
      await expect(importThread(store, bad)).rejects.toMatchObject({ code: "invalid_export" });
    }
  });

  test("a key __proto__ inside exported data is imported as data and pollutes no prototype", async () => {
    const text = await exportThread(await createWaitingThread("t"), "t");
    const odd = await forged(text, (rows) => {
      find(rows, "run")["run"]!["metadata"] = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}');
    });
    const store = memoryStore();
    await importThread(store, odd);
    const [row] = await store.runs();
    expect(Object.keys(row?.metadata ?? {})).toEqual(["__proto__", "constructor"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(await exportThread(store, "t")).toBe(odd);
  });

  test("invalid import options and texts are refused with a clear error", async () => {
    const store = memoryStore();
    await expect(importThread(store, 7 as never)).rejects.toMatchObject({ code: "invalid_option" });
    await expect(importThread(store, "", { as: "t" })).rejects.toMatchObject({ code: "invalid_export" });
    await expect(importThread(store, "", { into: "t" } as never)).rejects.toMatchObject({ code: "invalid_option" });
    const text = await exportThread(await createWaitingThread("t"), "t");
    await expect(importThread(store, text, { as: "a b" })).rejects.toMatchObject({ code: "invalid_id" });
  });
});

describe("copied or pruned thread", () => {
  test("an answer to a copied thread resumes the copy, and the original still waits", async () => {
    const store = await createWaitingThread("t");
    await copyThread(store, "t", "copy");
    const done = await resume(chat, { store, thread: "copy", answers: { more: true } }).result;
    expect(done).toMatchObject({ status: "done", state: { last: "more" } });
    expect((await store.runs({ thread: "t" }))[0]?.status).toBe("waiting");
    expect((await store.thread("copy"))?.status).toBe("done");
  });

  test("a rollback of a waiting run on a pruned thread restores the state before its input [E47]", async () => {
    const store = memoryStore();
    await run(chat, { store, thread: "t", input: { said: ["one"] } }).result;
    await resume(chat, { store, thread: "t", answers: { more: true } }).result;
    const before = (await getState(chat, { store, thread: "t" })).state;
    await run(chat, { store, thread: "t", input: { said: ["two"], last: "mine" } }).result;
    await pruneThread(store, { keepLast: 1 });
    await run(chat, { store, thread: "t", input: { said: ["three"] }, onBusy: "rollback" }).result;
    const [entry] = (await store.history("t", { limit: 20 })).filter(({ source }) => source === "rollback");
    const { state } = await getState(chat, { store, thread: "t", at: entry?.id ?? 0 });
    expect(state).toEqual(before);
  });

  test("a fork from a retained checkpoint of a pruned thread starts with the state of that checkpoint [E47]", async () => {
    const store = await createWaitingThread("t");
    await resume(chat, { store, thread: "t", answers: { more: true } }).result;
    const head = (await store.head("t"))?.id ?? 0;
    await pruneThread(store, { keepLast: 1 });
    const branch = await fork(chat, { store, thread: "t", at: head, name: "b", update: { said: ["again"] } });
    expect((await getState(chat, { store, thread: "t", branch })).state).toEqual({
      said: ["hello", "said 1", "again"],
      last: "more",
    });
  });
});
