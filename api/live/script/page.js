"use strict";
const $ = (id) => document.getElementById(id);
const [picture, keys, note, role, who, address, tabs, bar] = ["picture", "keys", "note", "role", "who", "address", "tabs", "bar"].map($);
const paper = picture.getContext("2d");
const headerSize = 20; // of a picture's message: see package browser/view
// route returns the address of one of the live view's own routes, with the page's ticket.
const route = (path) => `${location.origin}${location.pathname}/${path}${location.search}`;

// on holds what to do with the daemon's messages, by type; see package browser/view.
const on = {};
let state = { control: false, tabs: [] };
let shown = { width: 1, height: 1, top: 0 }; // what the picture shows, in CSS pixels of the tab
