// app/agents/[...path]/route.js
import { server } from "../../../lib/server.mjs";

export const GET = server.fetch;
export const POST = server.fetch;
export const PUT = server.fetch;
export const PATCH = server.fetch;
export const DELETE = server.fetch;
export const OPTIONS = server.fetch;
