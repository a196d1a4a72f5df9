import { once } from "node:events";
import { connect } from "node:net";
import { serveHttp } from "@statewright/host";
import { expect, onTestFinished, test } from "vitest";

test("serveHttp refuses larger headers and more connections than its options allow [FX46]", async () => {
  const server = await serveHttp(async () => new Response("ok"), {
    port: 0,
    maxHeaderBytes: 512,
    maxConnections: 1,
    keepAliveTimeoutMs: 60_000,
  });
  onTestFinished(() => server.close());
  const url = `http://127.0.0.1:${server.port}`;
  const large = await fetch(url, { headers: { padding: "x".repeat(600), connection: "close" } });
  expect(large.status).toBe(431);
  const open = connect(server.port, "127.0.0.1");
  onTestFinished(() => void open.destroy());
  open.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [answer] = (await once(open, "data")) as [Buffer];
  expect(answer.toString()).toContain("200 OK");
  const second = connect(server.port, "127.0.0.1");
  await once(second, "close");
  expect(open.destroyed).toBe(false);
});

test("serveHttp refuses a taken port, hides handler errors from clients, and closes open requests", async () => {
  const errors: unknown[] = [];
  let gone: AbortSignal | undefined;
  const server = await serveHttp(
    async (request) => {
      if (request.url.endsWith("/broken")) throw new Error("a secret");
      if (!request.url.endsWith("/open")) return new Response(await request.text());
      gone = request.signal;
      return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode("begun")) }));
    },
    { port: 0, onError: (error) => errors.push(error) },
  );
  onTestFinished(() => server.close());
  expect(server.host).toBe("127.0.0.1");
  await expect(serveHttp(async () => new Response(), { port: server.port })).rejects.toMatchObject({
    name: "HostError",
    code: "io",
    systemCode: "EADDRINUSE",
  });
  const url = `http://127.0.0.1:${server.port}`;
  expect(await (await fetch(url, { method: "POST", body: "said" })).text()).toBe("said");
  const broken = await fetch(`${url}/broken`);
  expect([broken.status, await broken.text(), errors]).toEqual([500, "", [new Error("a secret")]]);

  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET /open HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [head] = (await once(socket, "data")) as [Buffer];
  expect(head.toString()).toContain("200 OK");
  const ended = once(socket, "close");
  await server.close();
  await ended;
  expect(gone?.aborted).toBe(true);
});

test("a body that fails while its client takes no bytes breaks the connection at once [V115]", async () => {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let disconnected: AbortSignal | undefined;
  const server = await serveHttp(
    async (request) => {
      disconnected = request.signal;
      return new Response(
        new ReadableStream({
          start: (opened) => {
            controller = opened;
            for (let count = 0; count < 64; count++) opened.enqueue(new Uint8Array(1_048_576));
          },
        }),
      );
    },
    { port: 0 },
  );
  onTestFinished(() => server.close());
  const client = connect(server.port, "127.0.0.1");
  onTestFinished(() => void client.destroy());
  client.on("error", () => client.destroy());
  client.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await once(client, "readable");
  client.pause();
  const gone = new Promise<void>((resolve) => disconnected?.addEventListener("abort", () => resolve(), { once: true }));
  controller?.error(new Error("the reader is too slow"));
  await gone;
  expect(disconnected?.aborted).toBe(true);
});

test("serveHttp closes an idle connection at once and a busy one after its response, at the latest after the grace time", async () => {
  let finish = (): void => undefined;
  const isFinished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let enter = (): void => undefined;
  const isEntered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const server = await serveHttp(
    async () => {
      enter();
      await isFinished;
      return new Response("whole");
    },
    { port: 0, keepAliveTimeoutMs: 60_000 },
  );
  const idle = connect(server.port, "127.0.0.1");
  await once(idle, "connect");
  const answer = fetch(`http://127.0.0.1:${server.port}`).then((response) => response.text());
  await isEntered;
  const closed = server.close({ graceMs: 60_000 });
  await once(idle, "close");
  finish();
  expect(await answer).toBe("whole");
  await closed;
  const hanging = await serveHttp(() => new Promise(() => undefined), { port: 0 });
  const cut = fetch(`http://127.0.0.1:${hanging.port}`);
  cut.catch(() => undefined);
  await hanging.close({ graceMs: 10 });
  await expect(cut).rejects.toThrow();
});
