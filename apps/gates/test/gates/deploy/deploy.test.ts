/** The steps of the page about deployments, in a fresh folder: build, start, health, a new version beside the old one. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { buildImage, type Image } from "../../../src/deploy/build-image.ts";
import { type Container, startContainer } from "../../../src/deploy/run-container.ts";

const root = fileURLToPath(new URL("../../../../../", import.meta.url));
const sources = join(root, "packages/statewright/test/docs/deploy");
const page = readFileSync(join(root, "docs/deploy.md"), "utf8");
const dockerfile = readFileSync(join(sources, "Dockerfile"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "deploy-"));
const context = join(folder, "context");
const token = "a-token-of-the-gate";
const authorization = `Bearer ${token}`;
const containers: Container[] = [];
let image: Image;
let before: string;

const State = z.looseObject({
  status: z.string(),
  values: z.looseObject({ messages: z.array(z.looseObject({ role: z.string() })) }),
});

beforeAll(async () => {
  // Another user than root reads the code and reaches the volume.
  chmodSync(folder, 0o755);
  const tarballs = join(folder, "tarballs");
  run(process.execPath, ["scripts/run.mjs", "release", "--dry-run", "--no-check", "--out", tarballs], root);
  mkdirSync(context);
  createProject(tarballs);
  for (const file of ["server.ts", "Dockerfile", ".dockerignore"]) cpSync(join(sources, file), join(context, file));
  image = buildImage(dockerfile, { context, folder });
  before = hashFolder(image.workFolder);
}, 600_000);

afterAll(async () => {
  for (const { child } of containers) child.kill("SIGKILL");
  await Promise.all(containers.map(({ ended }) => ended));
  rmSync(folder, { recursive: true, force: true });
});

test("the user of the image can write the volume, and neither the code nor the packages", async () => {
  const write = (path: string) => {
    const script = `require("node:fs").writeFileSync(process.argv[1], "")`;
    return startContainer(image, { command: ["node", "-e", script, join(path, "probe")] });
  };
  expect(await write(image.volumeFolder).ended).toBe(0);
  for (const path of [image.workFolder, join(image.workFolder, "node_modules")]) {
    const attempt = write(path);
    expect(await attempt.ended).toBe(1);
    expect(attempt.getOutput()).toMatch(/EACCES|EROFS/);
  }
});

test("a container without a token of its clients does not start", async () => {
  const container = startContainer(image, { env: { PORT: "0", ANTHROPIC_API_KEY: "not-a-key" } });
  containers.push(container);
  expect(await container.ended).toBe(1);
  expect(container.getOutput()).toContain("access");
});

test("a new version takes the run of the old one over: the old one drains, refuses new runs, saves and exits with 0", async () => {
  const model = await startModel();
  const old = await start(model.url);
  expect(await getStatus(old, "/livez")).toBe(200);
  expect(await getStatus(old, "/readyz")).toBe(200);
  expect(await old.checkHealth()).toBe(0);
  expect(await getStatus(old, "/api/threads")).toBe(401);

  expect((await post(old, "t1")).status).toBe(201);
  await model.asked;
  const next = await start(model.url);
  expect(await getStatus(next, "/readyz")).toBe(200);

  old.container.child.kill("SIGTERM");
  const refused = await waitForRefusal(old);
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await getStatus(old, "/readyz")).toBe(503);
  expect(await getStatus(old, "/livez")).toBe(200);
  expect((await fetch(`${old.url}/api/threads/t1`, { headers: { authorization } })).status).toBe(200);
  model.answer();
  expect(await old.container.ended).toBe(0);

  const events = await fetch(`${next.url}/api/threads/t1/events?end=idle`, { headers: { authorization } });
  expect(await events.text()).toContain("event: run.completed");
  const state = await fetch(`${next.url}/api/threads/t1/state`, { headers: { authorization } });
  const { status, values } = State.parse(await state.json());
  expect(status).toBe("done");
  expect(values.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(model.countAnswers()).toBe(1);

  next.container.child.kill("SIGTERM");
  expect(await next.container.ended).toBe(0);
  expect(hashFolder(image.workFolder)).toBe(before);
  await model.close();
});

/** Runs the lines of the page that create the project, with the tarballs in place of our packages. */
function createProject(tarballs: string): void {
  const [, lines = ""] = /## Create the project\n\n```sh\n([\s\S]*?)```/.exec(page) ?? [];
  const ours = readdirSync(tarballs).filter((file) => file.endsWith(".tgz"));
  for (const line of lines.trim().split("\n")) {
    const [program = "", ...args] = line.split(" ");
    if (args[0] !== "install") run(program, args, context);
    else {
      const foreign = args.slice(1).filter((name) => !/^(?:@statewright\/|statewright$)/.test(name));
      const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
      run(program, ["install", ...flags, ...foreign, ...ours.map((file) => `../tarballs/${file}`)], context);
    }
  }
}

interface Started {
  readonly container: Container;
  readonly url: string;
  /** Runs the health check of the image, and resolves to its exit code. */
  readonly checkHealth: () => Promise<number | null>;
}

async function start(modelUrl: string): Promise<Started> {
  const env = { PORT: "0", HOST: "127.0.0.1", API_TOKEN: token, ANTHROPIC_API_KEY: "not-a-key" };
  const container = startContainer(image, { env: { ...env, ANTHROPIC_BASE_URL: modelUrl } });
  containers.push(container);
  const line = await container.waitForLine("listening on");
  const url = line.slice(line.indexOf("http"));
  const command = image.healthCheck.map((word) => word.replace("http://127.0.0.1:4270", url));
  return { container, url, checkHealth: () => startContainer(image, { command }).ended };
}

async function getStatus({ url }: Started, path: string): Promise<number> {
  const response = await fetch(`${url}${path}`);
  await response.body?.cancel();
  return response.status;
}

function post({ url }: Started, thread: string): Promise<Response> {
  return fetch(`${url}/api/threads/${thread}/runs`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({
      graph: "assistant",
      input: { messages: [{ id: "m1", role: "user", content: [{ type: "text", text: "Hello." }] }] },
    }),
  });
}

/** Asks for unknown graphs until the server refuses runs: the signal reaches the process a moment after its sending. */
async function waitForRefusal(server: Started): Promise<Response> {
  for (;;) {
    if ((await getStatus(server, "/readyz")) === 503) return post(server, "t2");
  }
}

/** A model that answers when the test says so. */
async function startModel() {
  const waiting: ServerResponse[] = [];
  let answers = 0;
  let announce = (): void => {};
  const asked = new Promise<void>((resolve) => {
    announce = resolve;
  });
  const server: Server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      waiting.push(response);
      announce();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked,
    answer: () => {
      for (const response of waiting.splice(0)) {
        answers++;
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const event of listAnswerEvents())
          response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
        response.end();
      }
    },
    countAnswers: () => answers,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listAnswerEvents(): readonly { readonly type: string; readonly [key: string]: unknown }[] {
  const message = { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [] };
  const usage = { input_tokens: 10, output_tokens: 1 };
  return [
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null, usage } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello from the old version." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 8 } },
    { type: "message_stop" },
  ];
}

function run(program: string, args: readonly string[], cwd: string): void {
  const { NODE_OPTIONS: _, NODE_COMPILE_CACHE: __, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: exit code ${status}\n${stdout}${stderr}`);
}

/** Hash of the paths and contents of all files. */
function hashFolder(place: string): string {
  const hash = createHash("sha256");
  for (const path of readdirSync(place, { recursive: true, encoding: "utf8" }).sort()) {
    const file = join(place, path);
    hash.update(`\0${path}\0`);
    if (statSync(file).isFile()) hash.update(readFileSync(file));
  }
  return hash.digest("hex");
}
