// @boundaries-ignore installed by the gate
import { serve } from "@hono/node-server";
// @boundaries-ignore installed by the gate
import { Hono } from "hono";
import { server } from "./server.mjs";

const app = new Hono();
app.all("/agents/*", (c) => server.fetch(c.req.raw));
serve({ fetch: app.fetch, port: 3000, hostname: "127.0.0.1" });
