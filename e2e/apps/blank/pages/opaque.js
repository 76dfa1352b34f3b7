window.opaque = 'of another site';
