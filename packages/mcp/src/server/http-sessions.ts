/** HTTP sessions of protocol versions before 2026-07-28: each session has its own connection and one client. */
import { randomUUID } from "node:crypto";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { McpCaller } from "./caller.ts";
import { type Connection, createConnection, type ServerConfig } from "./connection.ts";
import { createRefusal } from "./http-access.ts";

interface Session extends Connection {
  readonly caller: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  usedAt: number;
}

/** Maximum number of sessions of all clients. */
const maxSessions = 1_024;

/** HTTP sessions of all clients. */
export class HttpSessions {
  readonly #config: ServerConfig;
  readonly #sessions = new Map<string, Session>();
  /** Client ids of sessions in creation: concurrent requests count against the limits. */
  readonly #opening: string[] = [];

  constructor(config: ServerConfig) {
    this.#config = config;
  }

  /** Handles a request of a session, or an initialize request. */
  async serve(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const session = id === null ? undefined : this.#sessions.get(id);
    // A session id of another client counts as unknown.
    if (id !== null && session?.caller !== caller.id) return createRefusal(404, "Session not found");
    if (session === undefined) return this.#open(request, message, caller);
    session.usedAt = this.#config.world.clock.monotonic();
    return session.transport.handleRequest(request, { parsedBody: message });
  }

  async close(): Promise<void> {
    const open = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(open.map(({ server }) => server.close()));
  }

  async #open(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    if (!isInitialize(message)) return createRefusal(400, "Bad Request: Mcp-Session-Id header is required");
    if (!(await this.#reserve(caller))) return createRefusal(503, "Too many sessions: close a session, or retry later");
    try {
      return await this.#create(request, message, caller);
    } finally {
      this.#opening.splice(this.#opening.indexOf(caller.id), 1);
    }
  }

  async #create(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    const { world } = this.#config;
    const connection = createConnection(this.#config, caller);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { ...connection, caller: caller.id, transport, usedAt: world.clock.monotonic() });
      },
      onsessionclosed: (id) => {
        this.#sessions.delete(id);
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
  async #reserve(caller: McpCaller): Promise<boolean> {
    const { limits, world } = this.#config;
    const sessions = this.#sessions;
    const idleSince = world.clock.monotonic() - limits.sessionIdleMs;
    const idleSessions = [...sessions]
      .filter(([, { calls }]) => calls() === 0)
      .sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [id, session] of idleSessions) if (session.usedAt <= idleSince) await this.#closeSession(id, session);
    const ownSessions = [...[...sessions.values()].map((session) => session.caller), ...this.#opening].filter(
      (id) => id === caller.id,
    );
    const isFull = ownSessions.length >= limits.sessions || sessions.size + this.#opening.length >= maxSessions;
    const oldest = isFull
      ? idleSessions.find(([id, session]) => session.caller === caller.id && sessions.has(id))
      : undefined;
    if (isFull && oldest === undefined) return false;
    this.#opening.push(caller.id);
    if (oldest !== undefined) await this.#closeSession(...oldest);
    return true;
  }

  async #closeSession(id: string, session: Session): Promise<void> {
    this.#sessions.delete(id);
    await session.server.close();
  }
}

function isInitialize(message: unknown): boolean {
  return typeof message === "object" && message !== null && Reflect.get(message, "method") === "initialize";
}
