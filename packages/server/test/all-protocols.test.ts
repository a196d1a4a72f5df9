/** Routes of all protocols: the order of authentication, role and right before each handler. */
import { memoryStore, type Store } from "@statewright/core";
import { expect, test } from "vitest";
import { uiStream } from "../src/ai-sdk.ts";
import type { Server } from "../src/index.ts";
import { langgraph } from "../src/langgraph.ts";
import { createTestRequest, createTestServer, testTokens } from "./support/create-test-server.ts";

const protocols = [langgraph(), uiStream()];

/** Store that counts its calls: a handler reads or writes it. */
function countCalls(store: Store): { readonly store: Store; readonly calls: string[] } {
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        calls.push(String(name));
        return value.apply(target, args);
      };
    },
  });
  return { store: counted, calls };
}

/** Calls each route that needs a credential. */
async function callAll(
  server: Server,
  request: { readonly token?: string; readonly only?: (isRead: boolean) => boolean },
): Promise<readonly { readonly route: string; readonly status: number; readonly text: string }[]> {
  const answers: { route: string; status: number; text: string }[] = [];
  for (const { method, path, action, isRead } of server.routes) {
    if (action === "public" || request.only?.(isRead) === false) continue;
    const url = path.replaceAll(/:([a-zA-Z]+)/g, "$1-1");
    const headers = request.token === undefined ? {} : { authorization: `Bearer ${request.token}` };
    const body = method === "GET" || method === "DELETE" ? {} : { body: {} };
    const response = await server.fetch(createTestRequest(url, { as: null, method, headers, ...body }));
    answers.push({ route: `${method} ${path}`, status: response.status, text: await response.text() });
  }
  return answers;
}

test("no route of any protocol calls the store before the authentication and the right to its action [V98]", async () => {
  const { store, calls } = countCalls(memoryStore());
  const asked: string[] = [];
  const { server, clock } = await createTestServer({
    store,
    protocols,
    access: {
      authenticate: ({ headers }) =>
        headers.has("authorization") ? { id: "ann", tenant: "acme", scopes: ["admin"] } : undefined,
      authorize: (_caller, { action }) => {
        asked.push(action);
        return false;
      },
    },
  });
  await clock.waitUntilIdle();
  calls.length = 0;
  const anonymous = await callAll(server, {});
  expect(anonymous.length).toBeGreaterThan(50);
  expect(anonymous.filter(({ status }) => status !== 401)).toEqual([]);
  expect(asked).toEqual([]);
  const denied = await callAll(server, { token: "any-token" });
  expect(denied.filter(({ status }) => status !== 403 && status !== 404)).toEqual([]);
  expect(asked).toEqual(server.routes.flatMap(({ action }) => (action === "public" ? [] : [action])));
  expect(calls).toEqual([]);
  expect(new Set(server.routes.map(({ protocol }) => protocol)).size).toBe(protocols.length + 2);
});

test("a server that only reads refuses each change of each protocol with read_only, before it reads the store [V11]", async () => {
  const { store, calls } = countCalls(memoryStore());
  const { server, clock } = await createTestServer({ store, protocols, role: "readOnly" });
  await clock.waitUntilIdle();
  calls.length = 0;
  const refused = await callAll(server, { token: testTokens.root, only: (isRead) => !isRead });
  expect(refused.length).toBeGreaterThan(20);
  expect(refused.filter(({ status, text }) => status !== 403 || !text.includes("read_only"))).toEqual([]);
  expect(calls).toEqual([]);
});
