/** HTTP sessions of protocol versions before 2026-07-28: each session has its own connection and one client. */
import { randomUUID } from "node:crypto";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { McpCaller } from "./caller.ts";
import { type Connection, createConnection, type ServerConfig } from "./connection.ts";
import { createRefusal } from "./http-access.ts";

/** HTTP sessions of all clients. */
export interface Sessions {
  /** Handles a request of a session, or an initialize request. */
  readonly serve: (request: Request, message: unknown, caller: McpCaller) => Promise<Response>;
  readonly count: () => number;
  readonly close: () => Promise<void>;
}

interface Session extends Connection {
  readonly caller: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  usedAt: number;
}

/** Maximum number of sessions of all clients. */
const maxSessions = 1_024;

/** Creates the session store of a server. */
export function createHttpSessions(config: ServerConfig): Sessions {
  const { limits, world } = config;
  const sessions = new Map<string, Session>();
  /** Client ids of sessions in creation: concurrent requests count against the limits. */
  const opening: string[] = [];

  async function serve(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const session = id === null ? undefined : sessions.get(id);
    // A session id of another client counts as unknown.
    if (id !== null && session?.caller !== caller.id) return createRefusal(404, "Session not found");
    if (session === undefined) return openSession(request, message, caller);
    session.usedAt = world.clock.monotonic();
    return session.transport.handleRequest(request, { parsedBody: message });
  }

  async function openSession(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    if (!isInitialize(message)) return createRefusal(400, "Bad Request: Mcp-Session-Id header is required");
    if (!(await reserveSession(caller)))
      return createRefusal(503, "Too many sessions: close a session, or retry later");
    try {
      return await createSession(request, message, caller);
    } finally {
      opening.splice(opening.indexOf(caller.id), 1);
    }
  }

  async function createSession(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    const connection = createConnection(config, caller);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, { ...connection, caller: caller.id, transport, usedAt: world.clock.monotonic() });
      },
      onsessionclosed: (id) => {
        sessions.delete(id);
      },
    });
    await connection.server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: message });
    if (transport.sessionId === undefined) await connection.server.close();
    return response;
  }

  /**
   * Reserves a session of a client, counted in `opening`. Closes all idle sessions after the idle time. At the limit
   * it closes the client's oldest session without a running call; a later request of that session gets 404 and opens
   * a new session, per the protocol. Returns false at the limit without such a session.
   */
  async function reserveSession(caller: McpCaller): Promise<boolean> {
    const idleSince = world.clock.monotonic() - limits.sessionIdleMs;
    const idleSessions = [...sessions]
      .filter(([, { calls }]) => calls() === 0)
      .sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [id, session] of idleSessions) if (session.usedAt <= idleSince) await closeSession(id, session);
    const ownSessions = [...[...sessions.values()].map((session) => session.caller), ...opening].filter(
      (id) => id === caller.id,
    );
    const isFull = ownSessions.length >= limits.sessions || sessions.size + opening.length >= maxSessions;
    const oldest = isFull
      ? idleSessions.find(([id, session]) => session.caller === caller.id && sessions.has(id))
      : undefined;
    if (isFull && oldest === undefined) return false;
    opening.push(caller.id);
    if (oldest !== undefined) await closeSession(...oldest);
    return true;
  }

  async function closeSession(id: string, session: Session): Promise<void> {
    sessions.delete(id);
    await session.server.close();
  }

  return {
    serve,
    count: () => sessions.size,
    close: async () => {
      const open = [...sessions.values()];
      sessions.clear();
      await Promise.all(open.map(({ server }) => server.close()));
    },
  };
}

function isInitialize(message: unknown): boolean {
  return typeof message === "object" && message !== null && Reflect.get(message, "method") === "initialize";
}
