import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** In development the page and the server have one origin: Vite passes the requests on. */
export default defineConfig({
  plugins: [react()],
  // Components of ../chat use the React of this page.
  resolve: { dedupe: ["react", "react-dom"] },
  server: { proxy: { "/langgraph": "http://127.0.0.1:4270" } },
});
